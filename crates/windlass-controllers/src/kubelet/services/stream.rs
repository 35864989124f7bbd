//! The TCP ports of Services: copies each connection to an endpoint.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use windlass_node::RuntimeError;

use super::backends::Backends;
use crate::kubelet::running_pods::PodNetwork;

/// The most connections of one listener.
const MAX_CONNECTIONS: usize = 1024;
/// The most connections of one pod to one listener: a pod does not take the places of all other pods.
const MAX_OF_CLIENT: usize = 512;
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
    let clients = Clients::default();
    loop {
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        let Some(stream) = accept(&listener, address).await else { continue };
        // A connection of a client that has too many is reset.
        let Some(place) = stream.peer_addr().ok().and_then(|peer| clients.place(peer.ip())) else { continue };
        let (backends, network) = (Arc::clone(&backends), network.clone());
        tokio::spawn(async move {
            if let Err(error) = copy(stream, &backends, &network).await {
                tracing::debug!(%address, %error, "a connection to a service failed");
            }
            drop((permit, place));
        });
    }
}

/// The number of connections of each client.
#[derive(Clone, Debug, Default)]
struct Clients(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// The place of one connection. Free when dropped.
#[derive(Debug)]
struct Place {
    clients: Clients,
    client: IpAddr,
}

impl Clients {
    /// Counts a connection. Returns `None` if the client has too many.
    fn place(&self, client: IpAddr) -> Option<Place> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(client).or_default();
        if *count >= MAX_OF_CLIENT {
            return None;
        }
        *count += 1;
        Some(Place { clients: self.clone(), client })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.clients.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_places_to_others() {
        let clients = Clients::default();
        let (greedy, other) = (IpAddr::from([10, 244, 0, 2]), IpAddr::from([10, 244, 0, 3]));
        let mut places: Vec<_> = std::iter::from_fn(|| clients.place(greedy)).take(MAX_CONNECTIONS).collect();
        assert!(places.len() < MAX_CONNECTIONS);
        assert!(clients.place(greedy).is_none() && clients.place(other).is_some());
        places.pop();
        let again = clients.place(greedy);
        assert!(again.is_some());
        drop((places, again));
        assert!(clients.0.lock().unwrap().is_empty());
    }
}
