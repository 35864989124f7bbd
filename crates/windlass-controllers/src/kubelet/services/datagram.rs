//! The UDP ports of Services: passes datagrams on to an endpoint, and the answers back to the sender.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::backends::Backends;
use crate::kubelet::running_pods::PodNetwork;

/// The most senders of one port. Datagrams of further senders are dropped.
const MAX_FLOWS: usize = 512;
/// How long an endpoint may be silent until the next datagram of the sender goes to the endpoint whose turn it is.
const IDLE: Duration = Duration::from_secs(30);
/// The pause after a datagram that was not received.
const RECEIVE_AGAIN: Duration = Duration::from_millis(100);
/// The longest datagram.
const LONGEST: usize = 1 << 16;

/// The sockets to the endpoints, by the sender.
type Flows = Arc<Mutex<HashMap<SocketAddr, Arc<UdpSocket>>>>;

/// Passes datagrams on until the task is aborted.
pub(super) async fn serve(
    socket: UdpSocket,
    address: SocketAddr,
    backends: Arc<Backends>,
    network: PodNetwork,
) {
    let socket = Arc::new(socket);
    let flows = Flows::default();
    // Dropping the set ends the tasks.
    let mut answers = JoinSet::new();
    let mut buffer = vec![0; LONGEST];
    loop {
        while answers.try_join_next().is_some() {}
        let (length, sender) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                // The answer to an earlier sender was refused, for example.
                tracing::debug!(%address, %error, "a datagram to a service was not received");
                tokio::time::sleep(RECEIVE_AGAIN).await;
                continue;
            }
        };
        let known = lock(&flows).get(&sender).cloned();
        let endpoint = match known {
            Some(endpoint) => endpoint,
            None if lock(&flows).len() >= MAX_FLOWS => continue,
            None => match backends.connect_udp(&network).await {
                Ok(endpoint) => {
                    let endpoint = Arc::new(endpoint);
                    lock(&flows).insert(sender, Arc::clone(&endpoint));
                    let (socket, flows) = (Arc::downgrade(&socket), Arc::clone(&flows));
                    answers.spawn(answer(socket, sender, Arc::clone(&endpoint), flows));
                    endpoint
                }
                Err(error) => {
                    tracing::debug!(%address, %error, "a datagram to a service has no endpoint");
                    continue;
                }
            },
        };
        if endpoint.send(&buffer[..length]).await.is_err() {
            // Nothing listens at the endpoint any more.
            lock(&flows).remove(&sender);
        }
    }
}

fn lock(flows: &Flows) -> std::sync::MutexGuard<'_, HashMap<SocketAddr, Arc<UdpSocket>>> {
    flows.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes answers back to the sender until the endpoint is silent.
async fn answer(socket: Weak<UdpSocket>, sender: SocketAddr, endpoint: Arc<UdpSocket>, flows: Flows) {
    let mut buffer = vec![0; LONGEST];
    while let Ok(Ok(length)) = tokio::time::timeout(IDLE, endpoint.recv(&mut buffer)).await {
        // The address is free as soon as the listener has ended.
        let Some(socket) = socket.upgrade() else { return };
        let _ = socket.send_to(&buffer[..length], sender).await;
    }
    let mut flows = lock(&flows);
    if flows.get(&sender).is_some_and(|known| Arc::ptr_eq(known, &endpoint)) {
        flows.remove(&sender);
    }
}
