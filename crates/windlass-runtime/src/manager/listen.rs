//! Listening sockets.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// The number of connections that wait to be accepted at most.
const BACKLOG: i32 = 1024;

/// Listens on an address. `[::]` means all addresses, including IPv4; on systems without IPv6, all IPv4
/// addresses.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let error = match bind(address) {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    if address.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED) || error.kind() == io::ErrorKind::AddrInUse {
        return Err(error);
    }
    bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()))).map_err(|_| error)
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // As tokio does: a restarted process can listen at once.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn the_unspecified_address_of_ipv6_is_that_of_ipv4_too() {
        let listener = listen(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))).expect("listens");
        let port = listener.local_addr().expect("an address").port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("connects by IPv4");
        if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.expect("connects by IPv6");
        }
    }

    #[tokio::test]
    async fn an_address_in_use_is_an_error() {
        let listener = listen(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))).expect("listens");
        let error = listen(listener.local_addr().expect("an address")).expect_err("it is in use");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
