//! The sockets that a runtime makes in the networks of pods and of the node.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use tokio::net::{TcpListener, TcpSocket, UdpSocket};

use crate::RuntimeError;

/// The number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Listens on `address` with a new socket of the node's network.
pub(crate) fn listen(socket: OwnedFd, address: SocketAddr) -> Result<TcpListener, RuntimeError> {
    let socket = TcpSocket::from_std_stream(socket.into());
    let listening =
        socket.set_reuseaddr(true).and_then(|()| socket.bind(address)).and_then(|()| socket.listen(BACKLOG));
    listening.map_err(|error| RuntimeError::Io { doing: format!("listen on {address} for pods"), error })
}

/// Receives the datagrams to `address` with a new socket of the node's network.
pub(crate) fn bind(socket: OwnedFd, address: SocketAddr) -> Result<UdpSocket, RuntimeError> {
    let bound = rustix::net::bind(&socket, &address).map_err(io::Error::from);
    bound
        .and_then(|()| datagrams(socket))
        .map_err(|error| RuntimeError::Io { doing: format!("bind udp {address} for pods"), error })
}

/// Connects a new UDP socket of a pod's network to a port of the pod.
pub(crate) async fn connect_udp(socket: OwnedFd, to: SocketAddr) -> Result<UdpSocket, RuntimeError> {
    let io = |error| RuntimeError::Io { doing: format!("dial udp {to}"), error };
    let socket = datagrams(socket).map_err(io)?;
    socket.connect(to).await.map_err(io)?;
    Ok(socket)
}

/// Makes a UDP socket of a file descriptor that does not block.
fn datagrams(socket: OwnedFd) -> io::Result<UdpSocket> {
    UdpSocket::from_std(socket.into())
}
