//! The network of the pods: where `proxy` and webhooks are dialled.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::nodes::{Connection, Nodes, Pod, Target};

/// How long an address may take to accept a connection; Go's figure.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// Connects to pods: through the nodes, or directly.
#[derive(Clone, Default)]
pub(crate) struct PodNetwork(Option<Arc<dyn Nodes>>);

impl PodNetwork {
    pub(crate) fn new(nodes: Option<Arc<dyn Nodes>>) -> Self {
        Self(nodes)
    }

    /// Returns the nodes, if the server has any.
    pub(crate) fn nodes(&self) -> Option<&Arc<dyn Nodes>> {
        self.0.as_ref()
    }

    /// Connects to an address or a host name.
    ///
    /// # Errors
    /// The words of Go, beginning with `dial tcp`.
    pub(crate) async fn dial(&self, host: &str, port: u16, pod: Option<&Pod>) -> Result<Connection, String> {
        let unknown = || format!("dial tcp: lookup {host}: no such host");
        let addresses = tokio::net::lookup_host((host, port)).await.map_err(|_| unknown())?;
        let mut last = unknown();
        for address in addresses {
            match self.connect(address.ip(), port, pod).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = format!("dial tcp {address}: connect: {}", reason(&error)),
            }
        }
        Err(last)
    }

    async fn connect(&self, address: IpAddr, port: u16, pod: Option<&Pod>) -> io::Result<Connection> {
        if let Some(nodes) = &self.0 {
            let target = Target { address, port, pod: pod.cloned() };
            if let Some(connected) = nodes.connect(&target).await {
                return connected;
            }
        }
        let connecting = timeout(CONNECT_WITHIN, TcpStream::connect((address, port)));
        let stream = connecting.await.map_err(|_| io::ErrorKind::TimedOut)??;
        // Requests are small, and each request waits for a reply.
        let _ = stream.set_nodelay(true);
        Ok(Box::new(stream))
    }
}

/// Returns the text of an error of the operating system, in Go's words.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => error.to_string(),
    }
}
