//! Connections through a proxy.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use crate::server::{Certificate, Reply, TestServer, client, exchange, get};

/// The authentication by user and password (RFC 1929).
const PASSWORD: u8 = 2;

/// Starts a SOCKS5 proxy that forwards each connection to `server`, after a user and a password. Returns the address.
async fn socks_proxy(server: SocketAddr, user: &'static [u8], password: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a proxy");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.expect("a connection");
            tokio::spawn(async move {
                if knows(&mut client, user, password).await? {
                    skip_request(&mut client).await?;
                    let mut server = TcpStream::connect(server).await?;
                    copy_bidirectional(&mut client, &mut server).await?;
                }
                std::io::Result::Ok(())
            });
        }
    });
    address
}

/// Returns whether the client knows the user and the password.
async fn knows(client: &mut TcpStream, user: &[u8], password: &[u8]) -> std::io::Result<bool> {
    let _version = client.read_u8().await?;
    let is_offered = text(client).await?.contains(&PASSWORD);
    client.write_all(&[5, if is_offered { PASSWORD } else { 255 }]).await?;
    if !is_offered {
        return Ok(false);
    }
    let _version = client.read_u8().await?;
    let is_known = text(client).await? == user && text(client).await? == password;
    client.write_all(&[1, u8::from(!is_known)]).await?;
    Ok(is_known)
}

/// Reads a text with its length in front.
async fn text(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut text = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut text).await?;
    Ok(text)
}

/// Reads the address to connect to, an IPv4 address, and confirms a connection.
async fn skip_request(client: &mut TcpStream) -> std::io::Result<()> {
    client.read_exact(&mut [0; 10]).await?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

#[tokio::test]
async fn a_socks_proxy_gets_the_user_and_the_password_of_its_url() {
    let certificate = Certificate::new();
    let server = TestServer::start(&certificate, |_, _| Reply::Text("ok")).await;
    let proxy = socks_proxy(server.address, b"alice@home", b"pass:word").await;
    let mut config = certificate.config(server.address);
    let url = format!("socks5://alice%40home:pass%3Aword@{proxy}");
    config.proxy_url = Some(url.parse().expect("a URL"));
    assert_eq!(exchange(&client(config), get("/objects")).await, "ok");
}
