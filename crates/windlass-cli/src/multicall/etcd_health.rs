//! The health of the etcd servers of `--etcd-servers`. No object is stored there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use windlass_apiserver::HealthCheck;

use crate::error::Result;

/// How often the servers are asked.
const INTERVAL: Duration = Duration::from_millis(500);
/// The time limit for an answer of a server.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// The part of a reply that is read, in bytes.
const MAX_REPLY: usize = 8192;

/// The health check `etcd`: the result of the last question.
#[derive(Clone)]
pub(super) struct EtcdHealth {
    servers: Arc<[Server]>,
    last: Arc<Mutex<Result<(), String>>>,
}

/// A server of `--etcd-servers`.
struct Server {
    /// `host:port`.
    address: String,
    /// True if the server speaks HTTP without TLS. The check of a server with TLS only opens a connection.
    is_plain: bool,
}

impl Server {
    fn parse(url: &str) -> Result<Self> {
        let wrong = || format!("--etcd-servers: {url:?} is not a URL like http://127.0.0.1:2379");
        let (scheme, place) = url.split_once("://").ok_or_else(wrong)?;
        let address = place.trim_end_matches('/');
        if !matches!(scheme, "http" | "https") || !address.contains(':') || address.contains('/') {
            return Err(wrong().into());
        }
        Ok(Self { address: address.to_owned(), is_plain: scheme == "http" })
    }

    async fn ask(&self) -> Result<(), String> {
        let work = async {
            let stream = TcpStream::connect(&self.address).await.map_err(|error| error.to_string())?;
            if self.is_plain { self.ask_health(stream).await } else { Ok(()) }
        };
        let limit = tokio::time::timeout(ANSWER_LIMIT, work);
        let result = limit.await.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        result.map_err(|why| format!("etcd at {}: {why}", self.address))
    }

    async fn ask_health(&self, mut stream: TcpStream) -> Result<(), String> {
        let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut reply = Vec::new();
        let mut head = stream.take(MAX_REPLY as u64);
        head.read_to_end(&mut reply).await.map_err(|error| error.to_string())?;
        let reply = String::from_utf8_lossy(&reply);
        let is_ok = reply.split_whitespace().nth(1) == Some("200");
        if is_ok && reply.contains(r#""health":"true""#) {
            return Ok(());
        }
        Err(format!("not healthy: {}", reply.lines().last().unwrap_or_default()))
    }
}

impl EtcdHealth {
    /// Reads the URLs of the flag. `None` if there are none.
    pub(super) fn of(urls: &[String]) -> Result<Option<Self>> {
        let servers = urls.iter().map(|url| Server::parse(url)).collect::<Result<Vec<_>>>()?;
        let last = Arc::new(Mutex::new(Err("not asked yet".to_owned())));
        Ok((!servers.is_empty()).then(|| Self { servers: servers.into(), last }))
    }

    /// Polls the servers until a server is healthy.
    ///
    /// # Errors
    /// None is within `limit`.
    pub(super) async fn wait(&self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while let Err(why) = self.ask().await {
            if Instant::now() + INTERVAL > deadline {
                return Err(format!("--etcd-servers: {why}").into());
            }
            tokio::time::sleep(INTERVAL).await;
        }
        Ok(())
    }

    /// Asks the servers again and again. Never returns.
    pub(super) async fn watch(self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let _ = self.ask().await;
        }
    }

    /// Asks the servers, and keeps the result for the health check.
    async fn ask(&self) -> Result<(), String> {
        let mut result = Err("there is no etcd server".to_owned());
        for server in self.servers.iter() {
            result = server.ask().await;
            if result.is_ok() {
                break;
            }
        }
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&result);
        result
    }
}

impl HealthCheck for EtcdHealth {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn check(&self) -> Result<(), String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_check_follows_the_server() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let health = EtcdHealth::of(&[url]).unwrap().unwrap();
        assert!(health.check().is_err());
        let answering = tokio::spawn(super::super::etcd::serve(listener));
        health.wait(Duration::from_secs(5)).await.unwrap();
        assert_eq!(health.check(), Ok(()));
        answering.abort();
        let _ = answering.await;
        assert!(health.ask().await.is_err());
        let why = health.check().unwrap_err();
        assert!(why.starts_with("etcd at 127.0.0.1:"), "{why}");
        assert!(health.wait(Duration::ZERO).await.is_err());
    }

    #[test]
    fn other_urls_are_refused() {
        for url in ["127.0.0.1:2379", "ftp://127.0.0.1:2379", "http://127.0.0.1", "http://127.0.0.1:1/x"] {
            assert!(EtcdHealth::of(&[url.to_owned()]).is_err(), "{url}");
        }
        assert!(EtcdHealth::of(&[]).unwrap().is_none());
    }
}
