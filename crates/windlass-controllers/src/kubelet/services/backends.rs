//! The endpoints of one port of a Service, and connections to an endpoint.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpStream, UdpSocket};
use windlass_node::RuntimeError;

use crate::kubelet::running_pods::{PodNetwork, dial, dial_udp};

/// How long a connection to an endpoint may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The addresses of pods: nothing answers for simulated pods.
const POD_NETWORK: [u8; 2] = [10, 244];

/// The endpoints of one port of a Service.
#[derive(Debug, Default)]
pub(super) struct Backends {
    endpoints: Mutex<Vec<SocketAddr>>,
    next: AtomicUsize,
}

impl Backends {
    pub(super) fn new(endpoints: Vec<SocketAddr>) -> Self {
        Self { endpoints: Mutex::new(endpoints), next: AtomicUsize::new(0) }
    }

    /// Replaces the endpoints.
    pub(super) fn set(&self, endpoints: Vec<SocketAddr>) {
        *self.endpoints.lock().unwrap_or_else(PoisonError::into_inner) = endpoints;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns all endpoints, the endpoint whose turn it is first.
    fn in_turn(&self) -> Vec<SocketAddr> {
        let mut all = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !all.is_empty() {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % all.len();
            all.rotate_left(turn);
        }
        all
    }

    /// Connects to the first endpoint that answers.
    pub(super) async fn connect(&self, network: &PodNetwork) -> Result<TcpStream, RuntimeError> {
        let mut last = no_endpoint();
        for endpoint in self.in_turn() {
            let late = || RuntimeError::Start(format!("dial tcp {endpoint}: i/o timeout"));
            let connected = tokio::time::timeout(CONNECT_WITHIN, connect(network, endpoint)).await;
            match connected.unwrap_or_else(|_| Err(late())) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Makes a UDP socket that is connected to the first endpoint for which a socket can be made.
    pub(super) async fn connect_udp(&self, network: &PodNetwork) -> Result<UdpSocket, RuntimeError> {
        let mut last = no_endpoint();
        for endpoint in self.in_turn() {
            match connect_udp(network, endpoint).await {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn no_endpoint() -> RuntimeError {
    RuntimeError::NotFound("an endpoint".to_owned())
}

/// Connects to an endpoint: a pod whose programs run, or an address that the machine reaches.
async fn connect(network: &PodNetwork, endpoint: SocketAddr) -> Result<TcpStream, RuntimeError> {
    if let Some(connected) = network.connect(endpoint.ip(), endpoint.port()).await {
        return connected;
    }
    refuse_simulated(endpoint)?;
    dial((endpoint.ip(), endpoint.port())).await
}

async fn connect_udp(network: &PodNetwork, endpoint: SocketAddr) -> Result<UdpSocket, RuntimeError> {
    if let Some(connected) = network.connect_udp(endpoint.ip(), endpoint.port()).await {
        return connected;
    }
    refuse_simulated(endpoint)?;
    dial_udp(endpoint).await
}

/// Refuses the address of a pod whose programs do not run.
fn refuse_simulated(endpoint: SocketAddr) -> Result<(), RuntimeError> {
    match endpoint.ip() {
        IpAddr::V4(address) if address.octets()[..2] == POD_NETWORK => {
            Err(RuntimeError::NotFound(format!("a program at {endpoint}: the pod is simulated")))
        }
        _ => Ok(()),
    }
}
