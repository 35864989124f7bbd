//! The TCP ports of Services: copies each connection to an endpoint.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use windlass_node::RuntimeError;

use super::backends::Backends;
use crate::kubelet::running_pods::PodNetwork;

/// The most connections of one listener.
const MAX_CONNECTIONS: usize = 512;
/// The pause after an accept that failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Accepts connections until the task is aborted, and serves each connection in a task of its own.
pub(super) async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    backends: Arc<Backends>,
    network: PodNetwork,
) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        let Some(stream) = accept(&listener, address).await else { continue };
        let (backends, network) = (Arc::clone(&backends), network.clone());
        tokio::spawn(async move {
            if let Err(error) = copy(stream, &backends, &network).await {
                tracing::debug!(%address, %error, "a connection to a service failed");
            }
            drop(permit);
        });
    }
}

/// Accepts a connection. After a failure, returns `None` after a pause.
pub(in crate::kubelet) async fn accept(listener: &TcpListener, address: SocketAddr) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            tracing::debug!(%address, %error, "a connection to a service was not accepted");
            tokio::time::sleep(ACCEPT_AGAIN).await;
            None
        }
    }
}

/// Copies a connection to an endpoint. Dropping the stream resets the connection.
async fn copy(mut stream: TcpStream, backends: &Backends, network: &PodNetwork) -> Result<(), RuntimeError> {
    let mut to = backends.connect(network).await?;
    let _ = (stream.set_nodelay(true), to.set_nodelay(true));
    let copied = tokio::io::copy_bidirectional(&mut stream, &mut to).await;
    copied.map(drop).map_err(|error| RuntimeError::Io { doing: "copying to an endpoint".to_owned(), error })
}
