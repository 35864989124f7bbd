//! `etcd` for test frameworks: answers health checks. The objects are in `kube-apiserver`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::{env, fs};

use clap::Parser;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::flags;
use crate::error::Result;
use crate::logging;
use crate::signals::ShutdownSignal;

const HEALTHY: &str = r#"{"health":"true","reason":""}"#;
const VERSION: &str = r#"{"etcdserver":"3.6.0","etcdcluster":"3.6.0","storage":"3.6.0"}"#;
const ELSEWHERE: &str = "this etcd only answers health checks: kube-apiserver keeps its objects itself\n";

/// Stand in for etcd beside windlass's kube-apiserver, which keeps objects in memory: only health checks are
/// answered.
#[derive(Parser)]
#[command(name = "etcd", version)]
struct Etcd {
    /// Answer health checks at these addresses.
    #[arg(long, value_name = "URLS", value_delimiter = ',', default_value = "http://127.0.0.1:2379")]
    listen_client_urls: Vec<String>,

    /// Create this folder, which stays empty: test frameworks delete the folder at the end.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Create this folder, which stays empty.
    #[arg(long, value_name = "DIR")]
    wal_dir: Option<PathBuf>,

    /// Has no effect: no file is written.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    unsafe_no_fsync: Option<String>,
}

pub(super) async fn run() -> Result<()> {
    let words = env::args_os().map(flags::with_two_dashes);
    let (arguments, _flags) = flags::parse::<Etcd>(flags::ETCD_WITHOUT_EFFECT, words);
    logging::start(0);
    for folder in [&arguments.data_dir, &arguments.wal_dir].into_iter().flatten() {
        fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }
    let shutdown = ShutdownSignal::listen()?;
    let mut addresses = Vec::new();
    for url in &arguments.listen_client_urls {
        addresses.extend(resolve(url)?);
    }
    for address in addresses {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| format!("cannot listen on {address} (--listen-client-urls): {error}"))?;
        tokio::spawn(serve(listener));
    }
    shutdown.received().await;
    Ok(())
}

/// Returns the addresses of a URL such as `http://127.0.0.1:2379`.
fn resolve(url: &str) -> Result<Vec<SocketAddr>> {
    let wrong = || format!("--listen-client-urls: {url:?} is not a URL like http://127.0.0.1:2379");
    let place = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    let found: Vec<SocketAddr> =
        place.to_socket_addrs().map_err(|error| format!("{}: {error}", wrong()))?.collect();
    Ok(found)
}

pub(super) async fn serve(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(std::time::Duration::from_secs(10), answer(stream)).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers a request, and closes the connection.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") && head.len() < 8192 {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    let (status, media_type, body) = match path.split('?').next() {
        Some("/health" | "/livez" | "/readyz") => ("200 OK", "application/json", HEALTHY),
        Some("/version") => ("200 OK", "application/json", VERSION),
        _ => ("404 Not Found", "text/plain; charset=utf-8", ELSEWHERE),
    };
    let length = body.len();
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await
}
