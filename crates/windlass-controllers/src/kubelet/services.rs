//! Services for the programs of pods: a listener for each port of a Service, whose connections and datagrams are copied to an endpoint.
//!
//! The pods of the node share a network in which the runtime listens on the addresses of Services. This module connects to endpoints
//! from outside. The listeners are opened when the first sandbox exists. Nothing listens for a port without endpoints: connections are
//! refused.

mod backends;
mod datagram;
mod stream;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_core::ResourceExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windlass_node::RuntimeError;
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Reconciler, Result};

use self::backends::Backends;
pub(super) use self::stream::accept;
use super::dns::{DNS_SERVER, NameServer, records_of};
use super::running_pods::RunningPods;

/// The address of the exposed ports of the machine, inside of pods.
pub(super) const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 250, 0, 1);
/// The name of that address in `/etc/hosts` of a pod.
pub(super) const HOST_NAME: &str = "host.windlass.internal";
/// The address of the Service `kubernetes`.
pub(super) const API_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The ranges of addresses that pods reach: of Services, of pods, and of the machine's exposed ports.
pub(super) const RANGES: [&str; 3] = ["10.0.0.0/16", "10.244.0.0/16", "10.250.0.1/32"];

/// The most listeners: each has a file descriptor.
const MAX_LISTENERS: usize = 8192;
/// How long a new sandbox waits for the Service `kubernetes`.
const KUBERNETES_WITHIN: Duration = Duration::from_secs(10);
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    /// Reads the protocol of an object's port. Returns `None` for SCTP.
    pub(super) fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("TCP") => Some(Self::Tcp),
            Some("UDP") => Some(Self::Udp),
            Some(_) => None,
        }
    }
}

/// Where a listener listens.
type Port = (Protocol, SocketAddr);

/// The target of a listener.
#[derive(Clone)]
enum Target {
    Endpoints(Arc<Backends>),
    NameServer,
}

/// The listeners of a node.
pub(super) struct ServiceProxy {
    pods: RunningPods,
    /// Ports of the machine that pods reach.
    host_ports: Vec<u16>,
    names: Arc<NameServer>,
    table: Mutex<Table>,
    /// Held while listeners are made, so that no address is taken twice.
    listening: tokio::sync::Mutex<()>,
    /// True if the Service `kubernetes` has an endpoint.
    is_ready: watch::Sender<bool>,
}

#[derive(Default)]
struct Table {
    /// The ports of each Service.
    services: BTreeMap<ObjectKey, BTreeMap<Port, Arc<Backends>>>,
    listeners: BTreeMap<Port, JoinHandle<()>>,
    /// The network of the listeners. `None` until the first sandbox exists.
    network: Option<u64>,
}

impl ServiceProxy {
    pub(super) fn new(pods: RunningPods, host_ports: Vec<u16>) -> Arc<Self> {
        let (is_ready, _) = watch::channel(false);
        Arc::new(Self {
            pods,
            host_ports,
            names: Arc::default(),
            table: Mutex::default(),
            listening: tokio::sync::Mutex::default(),
            is_ready,
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a new sandbox can reach the API server, and listens for all Services.
    ///
    /// # Errors
    /// The runtime cannot listen on the address of the API server or of the name server.
    pub(super) async fn open(&self) -> std::result::Result<(), RuntimeError> {
        let mut ready = self.is_ready.subscribe();
        // A cluster without the Service has pods, too.
        let _ = tokio::time::timeout(KUBERNETES_WITHIN, ready.wait_for(|ready| *ready)).await;
        let _listening = self.listening.lock().await;
        close(self.leave_network()).await;
        for (port, target) in self.targets() {
            if let Err(error) = self.listen(port, target).await {
                let address = port.1;
                if [API_SERVER, DNS_SERVER].map(IpAddr::from).contains(&address.ip()) {
                    return Err(error);
                }
                tracing::warn!(%address, %error, "pods cannot reach a service");
            }
        }
        Ok(())
    }

    /// Takes the listeners of an earlier network out of the table.
    fn leave_network(&self) -> Vec<JoinHandle<()>> {
        let mut table = self.table();
        let network = Some(self.pods.runtime().network());
        if table.network == network {
            return Vec::new();
        }
        table.network = network;
        std::mem::take(&mut table.listeners).into_values().collect()
    }

    /// Returns all ports on which the node listens.
    fn targets(&self) -> Vec<(Port, Target)> {
        let of_machine = self.host_ports.iter().map(|port| {
            let backends = Backends::new(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, *port))]);
            let address = SocketAddr::from((HOST_ADDRESS, *port));
            ((Protocol::Tcp, address), Target::Endpoints(Arc::new(backends)))
        });
        let names = [Protocol::Udp, Protocol::Tcp]
            .map(|protocol| ((protocol, SocketAddr::from((DNS_SERVER, 53))), Target::NameServer));
        let table = self.table();
        let of_services = table
            .services
            .values()
            .flatten()
            .filter(|(_, backends)| self.listens_for(backends))
            .map(|(port, backends)| (*port, Target::Endpoints(Arc::clone(backends))));
        names.into_iter().chain(of_machine).chain(of_services).collect()
    }

    /// Returns whether the node listens for a port with these endpoints.
    fn listens_for(&self, backends: &Backends) -> bool {
        !backends.is_empty() || !self.pods.runtime().keeps_addresses()
    }

    /// Listens on a port unless the node listens already.
    async fn listen(
        &self,
        (protocol, address): Port,
        target: Target,
    ) -> std::result::Result<(), RuntimeError> {
        {
            let table = self.table();
            if table.listeners.contains_key(&(protocol, address)) {
                return Ok(());
            }
            if table.listeners.len() >= MAX_LISTENERS {
                let text = format!("this node listens for {MAX_LISTENERS} ports of services already");
                return Err(RuntimeError::Unsupported(text));
            }
        }
        let (runtime, network) = (self.pods.runtime(), self.pods.network());
        let task = match protocol {
            Protocol::Tcp => {
                let listener = runtime.listen(address).await?;
                match target {
                    Target::Endpoints(backends) => {
                        tokio::spawn(stream::serve(listener, address, backends, network))
                    }
                    Target::NameServer => tokio::spawn(Arc::clone(&self.names).serve_streams(listener)),
                }
            }
            Protocol::Udp => {
                let socket = runtime.bind(address).await?;
                match target {
                    Target::Endpoints(backends) => {
                        tokio::spawn(datagram::serve(socket, address, backends, network))
                    }
                    Target::NameServer => tokio::spawn(Arc::clone(&self.names).serve_datagrams(socket)),
                }
            }
        };
        self.table().listeners.insert((protocol, address), task);
        Ok(())
    }

    /// Replaces the ports of a Service, and opens and closes listeners.
    async fn replace(&self, key: &ObjectKey, ports: BTreeMap<Port, Vec<SocketAddr>>) {
        let _listening = self.listening.lock().await;
        let (gone, wanted) = self.update_table(key, ports);
        let (closed, is_active) = {
            let mut table = self.table();
            let closed = gone.iter().filter_map(|port| table.listeners.remove(port)).collect();
            (closed, table.network.is_some())
        };
        close(closed).await;
        for (port, backends) in wanted.into_iter().filter(|_| is_active) {
            if let Err(error) = self.listen(port, Target::Endpoints(backends)).await {
                tracing::warn!(service = %key, address = %port.1, %error, "pods cannot reach a service");
            }
        }
    }

    /// Returns the ports for which the node listens no more, and the ports for which the node listens.
    fn update_table(
        &self,
        key: &ObjectKey,
        ports: BTreeMap<Port, Vec<SocketAddr>>,
    ) -> (Vec<Port>, Vec<(Port, Arc<Backends>)>) {
        let mut table = self.table();
        let mut known = table.services.remove(key).unwrap_or_default();
        let mut gone: Vec<Port> = known.keys().filter(|port| !ports.contains_key(port)).copied().collect();
        known.retain(|port, _| ports.contains_key(port));
        let mut wanted = Vec::new();
        let mut has_endpoint = false;
        for (port, endpoints) in ports {
            has_endpoint |= !endpoints.is_empty();
            let backends = known.entry(port).or_default();
            backends.set(endpoints);
            if self.listens_for(backends) {
                wanted.push((port, Arc::clone(backends)));
            } else {
                gone.push(port);
            }
        }
        if key.namespace() == Some("default") && key.name() == "kubernetes" {
            self.is_ready.send_replace(has_endpoint);
        }
        if !known.is_empty() {
            table.services.insert(key.clone(), known);
        }
        (gone, wanted)
    }
}

/// Ends listeners, and waits until their addresses are free.
async fn close(listeners: Vec<JoinHandle<()>>) {
    for listener in listeners {
        listener.abort();
        let _ = listener.await;
    }
}

/// Returns the addresses of a Service with their ready endpoints. The address of the name server is not a Service's.
fn ports_of(service: &Service, slices: &[Arc<EndpointSlice>]) -> BTreeMap<Port, Vec<SocketAddr>> {
    let mut ports = BTreeMap::new();
    let Some(spec) = &service.spec else { return ports };
    let addresses: Vec<IpAddr> = spec.cluster_ips.iter().flatten().filter_map(|ip| ip.parse().ok()).collect();
    let addresses = addresses.iter().filter(|address| **address != IpAddr::from(DNS_SERVER));
    for port in spec.ports.iter().flatten() {
        let Some(protocol) = Protocol::parse(port.protocol.as_deref()) else { continue };
        let Ok(number) = u16::try_from(port.port) else { continue };
        let name = port.name.as_deref().unwrap_or_default();
        let endpoints: Vec<SocketAddr> = slices.iter().flat_map(|slice| endpoints_of(slice, name)).collect();
        let of_port = |address: &IpAddr| ((protocol, SocketAddr::new(*address, number)), endpoints.clone());
        ports.extend(addresses.clone().map(of_port));
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

/// Keeps the listeners and the names of one Service.
struct Listeners(Arc<ServiceProxy>);

/// Returns the controller that keeps the listeners.
pub(super) fn controller(proxy: Arc<ServiceProxy>) -> Controller {
    Controller::of::<Service>(Listeners(proxy)).named("service-proxy").watches::<EndpointSlice>(service_of)
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn service_of(slice: &EndpointSlice, _: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let namespace = slice.namespace().unwrap_or_default();
    let name = slice.labels().get(SERVICE_NAME);
    Ok(name.map(|name| ObjectKey::namespaced(&namespace, name)).into_iter().collect())
}

impl Reconciler<Service> for Listeners {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Service>) -> Result<Action> {
        let (ports, records) = match cx.get(&key)? {
            Some(service) => {
                let slices = cx.lister::<EndpointSlice>()?.namespace(key.namespace().unwrap_or_default());
                let of_service = |slice: &Arc<EndpointSlice>| {
                    slice.labels().get(SERVICE_NAME).is_some_and(|name| name == key.name())
                };
                let slices: Vec<_> = slices.all()?.complete()?.into_iter().filter(of_service).collect();
                (ports_of(&service, &slices), records_of(&service, &slices))
            }
            None => (BTreeMap::new(), None),
        };
        self.0.names.replace(&key, records);
        self.0.replace(&key, ports).await;
        Ok(Action::done())
    }
}
