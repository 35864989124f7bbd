//! Services inside of sandboxes: a listener for each port of a Service, whose connections are copied to an endpoint.
//!
//! The sandbox of a pod has no route to other pods or to the machine. The runtime listens on the addresses of Services inside of the
//! sandbox, and this module connects from outside. Only TCP is served. A port on which a container of the pod declares to listen is the port
//! of the container: Services with the same port are not reached from this pod.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_core::ResourceExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use windlass_node::{RuntimeError, SandboxId};
use windlass_runtime::{Action, Context, Controller, Error, MapContext, ObjectKey, Reconciler, Result};

use super::running_pods::{RunningPods, dial};

/// The address of the exposed ports of the machine, inside of pods.
pub(super) const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 250, 0, 1);
/// The name of that address in `/etc/hosts` of a pod.
pub(super) const HOST_NAME: &str = "host.windlass.internal";
/// The address of the Service `kubernetes`.
pub(super) const API_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The addresses of simulated pods: nothing answers there.
const POD_NETWORK: [u8; 2] = [10, 244];

/// The most listeners of all sandboxes: each has a file descriptor.
const MAX_LISTENERS: usize = 8192;
/// The most connections of a listener.
const MAX_CONNECTIONS: usize = 512;
/// How long a connection to an endpoint may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long a new sandbox waits for the Service `kubernetes`.
const KUBERNETES_WITHIN: Duration = Duration::from_secs(10);
/// The pause after an accept that failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The listeners of all sandboxes.
pub(super) struct ServiceProxy {
    pods: RunningPods,
    /// Ports of the machine that pods reach.
    host_ports: Vec<u16>,
    table: Mutex<Table>,
    /// Held while a listener is made, so that no address is taken twice.
    listening: tokio::sync::Mutex<()>,
    /// Whether the Service `kubernetes` has an endpoint.
    is_ready: watch::Sender<bool>,
}

#[derive(Default)]
struct Table {
    /// The ports of each Service.
    services: BTreeMap<ObjectKey, BTreeMap<SocketAddr, Arc<Backends>>>,
    listeners: BTreeMap<SandboxId, BTreeMap<SocketAddr, AbortHandle>>,
}

/// The endpoints of a port of a Service.
#[derive(Debug, Default)]
struct Backends {
    endpoints: Mutex<Vec<SocketAddr>>,
    next: AtomicUsize,
}

impl Backends {
    fn endpoints(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all endpoints. Each call begins with the next endpoint.
    fn in_turn(&self) -> Vec<SocketAddr> {
        let mut all = self.endpoints().clone();
        if !all.is_empty() {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % all.len();
            all.rotate_left(turn);
        }
        all
    }
}

impl ServiceProxy {
    pub(super) fn new(pods: RunningPods, host_ports: Vec<u16>) -> Arc<Self> {
        let (is_ready, _) = watch::channel(false);
        Arc::new(Self {
            pods,
            host_ports,
            table: Mutex::default(),
            listening: tokio::sync::Mutex::default(),
            is_ready,
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a sandbox can reach the API server, then listens for all Services.
    ///
    /// # Errors
    /// The runtime cannot listen in the sandbox.
    pub(super) async fn open(self: &Arc<Self>, sandbox: &SandboxId) -> std::result::Result<(), RuntimeError> {
        let mut ready = self.is_ready.subscribe();
        // A cluster without the Service has pods, too.
        let _ = tokio::time::timeout(KUBERNETES_WITHIN, ready.wait_for(|ready| *ready)).await;
        for port in &self.host_ports {
            let backends = Backends {
                endpoints: Mutex::new(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, *port))]),
                next: AtomicUsize::new(0),
            };
            self.listen(sandbox, SocketAddr::from((HOST_ADDRESS, *port)), Arc::new(backends)).await?;
        }
        for (address, backends) in self.ports() {
            self.listen(sandbox, address, backends).await?;
        }
        Ok(())
    }

    /// Stops the listeners of a sandbox.
    pub(super) fn close(&self, sandbox: &SandboxId) {
        let listeners = self.table().listeners.remove(sandbox).unwrap_or_default();
        listeners.into_values().for_each(|listener| listener.abort());
    }

    fn ports(&self) -> Vec<(SocketAddr, Arc<Backends>)> {
        let table = self.table();
        let ports = table.services.values().flatten();
        ports.map(|(address, backends)| (*address, Arc::clone(backends))).collect()
    }

    async fn listen(
        self: &Arc<Self>,
        sandbox: &SandboxId,
        address: SocketAddr,
        backends: Arc<Backends>,
    ) -> std::result::Result<(), RuntimeError> {
        // A program could not listen on the port at all addresses.
        if address.ip() != IpAddr::from(API_SERVER) && self.pods.declares(sandbox, address.port()) {
            return Ok(());
        }
        let _listening = self.listening.lock().await;
        {
            let table = self.table();
            if table.listeners.get(sandbox).is_some_and(|known| known.contains_key(&address)) {
                return Ok(());
            }
            if table.listeners.values().map(BTreeMap::len).sum::<usize>() >= MAX_LISTENERS {
                let text =
                    format!("this node has {MAX_LISTENERS} listeners of services already: none is left");
                return Err(RuntimeError::Unsupported(text));
            }
        }
        let listener = self.pods.runtime().listen(sandbox, address).await?;
        let task = tokio::spawn(Arc::clone(self).accept(listener, address, backends));
        let mut table = self.table();
        table.listeners.entry(sandbox.clone()).or_default().insert(address, task.abort_handle());
        Ok(())
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, address: SocketAddr, backends: Arc<Backends>) {
        let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%address, %error, "a connection to a service was not accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            let (proxy, backends) = (Arc::clone(&self), Arc::clone(&backends));
            tokio::spawn(async move {
                if let Err(error) = proxy.copy(stream, &backends).await {
                    tracing::debug!(%address, %error, "a connection to a service failed");
                }
                drop(permit);
            });
        }
    }

    /// Copies a connection to the first endpoint that answers. Dropping the stream resets the connection.
    async fn copy(
        &self,
        mut stream: TcpStream,
        backends: &Backends,
    ) -> std::result::Result<(), RuntimeError> {
        let mut last = RuntimeError::NotFound("an endpoint".to_owned());
        for endpoint in backends.in_turn() {
            match self.connect(endpoint).await {
                Ok(mut to) => {
                    let _ = (stream.set_nodelay(true), to.set_nodelay(true));
                    let copied = tokio::io::copy_bidirectional(&mut stream, &mut to).await;
                    return copied.map(drop).map_err(|error| RuntimeError::Io {
                        doing: format!("copying to {endpoint}"),
                        error,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to an endpoint: a pod whose programs run, or an address that the machine reaches.
    async fn connect(&self, endpoint: SocketAddr) -> std::result::Result<TcpStream, RuntimeError> {
        let connect = async {
            if let Some(connected) = self.pods.network().connect(endpoint.ip(), endpoint.port()).await {
                return connected;
            }
            if is_simulated(endpoint.ip()) {
                return Err(RuntimeError::NotFound(format!("a program at {endpoint}: the pod is simulated")));
            }
            dial((endpoint.ip(), endpoint.port())).await
        };
        let late = || RuntimeError::Start(format!("dial tcp {endpoint}: i/o timeout"));
        tokio::time::timeout(CONNECT_WITHIN, connect).await.unwrap_or_else(|_| Err(late()))
    }

    /// Replaces the ports of a Service, and opens and closes listeners in all sandboxes.
    async fn replace(self: &Arc<Self>, key: &ObjectKey, ports: BTreeMap<SocketAddr, Vec<SocketAddr>>) {
        let (gone, added) = self.update_table(key, ports);
        for address in gone {
            let mut table = self.table();
            let listeners = table.listeners.values_mut();
            listeners.filter_map(|known| known.remove(&address)).for_each(|listener| listener.abort());
        }
        for sandbox in self.pods.sandboxes() {
            for (address, backends) in &added {
                if let Err(error) = self.listen(&sandbox, *address, Arc::clone(backends)).await {
                    tracing::warn!(pod = sandbox.0, %address, %error, "a pod cannot reach a service");
                }
            }
        }
    }

    /// Returns the removed addresses and the new addresses.
    fn update_table(
        &self,
        key: &ObjectKey,
        ports: BTreeMap<SocketAddr, Vec<SocketAddr>>,
    ) -> (Vec<SocketAddr>, Vec<(SocketAddr, Arc<Backends>)>) {
        let mut table = self.table();
        let mut known = table.services.remove(key).unwrap_or_default();
        let gone = known.keys().filter(|address| !ports.contains_key(address)).copied().collect();
        known.retain(|address, _| ports.contains_key(address));
        let mut added = Vec::new();
        let mut has_endpoint = false;
        for (address, endpoints) in ports {
            has_endpoint |= !endpoints.is_empty();
            let backends = known.entry(address).or_insert_with(|| {
                let fresh = Arc::new(Backends::default());
                added.push((address, Arc::clone(&fresh)));
                fresh
            });
            *backends.endpoints() = endpoints;
        }
        if key.namespace() == Some("default") && key.name() == "kubernetes" {
            self.is_ready.send_replace(has_endpoint);
        }
        if !known.is_empty() {
            table.services.insert(key.clone(), known);
        }
        (gone, added)
    }
}

/// Returns whether an address is that of a pod: if no program runs there, nothing answers.
fn is_simulated(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..2] == POD_NETWORK,
        IpAddr::V6(_) => false,
    }
}

/// Returns the addresses of a Service with their ready endpoints, for TCP.
fn ports_of(service: &Service, slices: &[Arc<EndpointSlice>]) -> BTreeMap<SocketAddr, Vec<SocketAddr>> {
    let mut ports = BTreeMap::new();
    let Some(spec) = &service.spec else { return ports };
    let addresses: Vec<IpAddr> = spec.cluster_ips.iter().flatten().filter_map(|ip| ip.parse().ok()).collect();
    for port in spec.ports.iter().flatten() {
        let is_tcp = port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
        let Ok(number) = u16::try_from(port.port) else { continue };
        if !is_tcp {
            continue;
        }
        let name = port.name.as_deref().unwrap_or_default();
        let endpoints: Vec<SocketAddr> = slices.iter().flat_map(|slice| endpoints_of(slice, name)).collect();
        ports.extend(addresses.iter().map(|address| (SocketAddr::new(*address, number), endpoints.clone())));
    }
    ports
}

/// Returns the ready endpoints of a slice for the port with this name.
fn endpoints_of(slice: &EndpointSlice, name: &str) -> Vec<SocketAddr> {
    let ports = slice.ports.iter().flatten();
    let of_name = ports.filter(|port| port.name.as_deref().unwrap_or_default() == name);
    let numbers: Vec<u16> = of_name.filter_map(|port| u16::try_from(port.port?).ok()).collect();
    let ready = slice.endpoints.iter().flatten().filter(|endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
    });
    let addresses = ready.flat_map(|endpoint| &endpoint.addresses).filter_map(|ip| ip.parse().ok());
    let addresses: Vec<IpAddr> = addresses.collect();
    let pairs = addresses.iter().flat_map(|ip| numbers.iter().map(|port| SocketAddr::new(*ip, *port)));
    pairs.collect()
}

/// Keeps the listeners of a Service.
struct Listeners(Arc<ServiceProxy>);

/// Returns the controller that keeps the listeners.
pub(super) fn controller(proxy: Arc<ServiceProxy>) -> Controller {
    Controller::of::<Service>(Listeners(proxy)).named("service-proxy").watches::<EndpointSlice>(service_of)
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn service_of(slice: &EndpointSlice, _: &MapContext) -> Result<Vec<ObjectKey>> {
    let namespace = slice.namespace().unwrap_or_default();
    let name = slice.labels().get(SERVICE_NAME);
    Ok(name.map(|name| ObjectKey::namespaced(&namespace, name)).into_iter().collect())
}

impl Reconciler<Service> for Listeners {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Service>) -> Result<Action> {
        let ports = match cx.get(&key)? {
            Some(service) => {
                let slices = cx.lister::<EndpointSlice>()?.namespace(key.namespace().unwrap_or_default());
                let of_service = |slice: &Arc<EndpointSlice>| {
                    slice.labels().get(SERVICE_NAME).is_some_and(|name| name == key.name())
                };
                let slices: Vec<_> = slices.all()?.complete()?.into_iter().filter(of_service).collect();
                ports_of(&service, &slices)
            }
            None => BTreeMap::new(),
        };
        self.0.replace(&key, ports).await;
        Ok(Action::done())
    }
}
