//! The pods whose programs run, for streams, logs, webhooks and proxies.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpStream, UdpSocket};
use windlass_node::{Command, ContainerId, Runtime, RuntimeError, SandboxId, Session};
use windlass_runtime::ObjectKey;

use super::node::HOST_IP;
use super::resolve::References;

/// The pods of a node whose programs run. Cheap to clone: all clones show the same pods.
///
/// The methods return `None` for a pod that is simulated or does not exist. Pods are named by their uid.
#[derive(Clone)]
pub struct RunningPods {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Arc<dyn Runtime>,
    directory: PathBuf,
    pods: Mutex<BTreeMap<String, RunningPod>>,
}

/// A pod whose programs run.
#[derive(Clone, Debug)]
struct RunningPod {
    key: ObjectKey,
    address: Option<IpAddr>,
    has_sandbox: bool,
    uses_host_network: bool,
    containers: BTreeMap<String, RunningContainer>,
    references: References,
}

/// A container that has been started at least once.
#[derive(Clone, Debug)]
struct RunningContainer {
    id: ContainerId,
    attempt: u32,
    is_running: bool,
}

/// The log files of a container, in the format of the CRI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerLogs {
    /// The file of the last start. The runtime may rotate the file.
    pub current: PathBuf,
    /// The file of the start before, for `kubectl logs --previous`.
    pub previous: Option<PathBuf>,
    /// True if the container runs, so that lines may follow.
    pub is_running: bool,
}

impl RunningPods {
    /// Creates the registry of a node. `directory` holds the volumes and logs of the pods, and may not exist yet.
    pub fn new(runtime: Arc<dyn Runtime>, directory: impl Into<PathBuf>) -> Self {
        let shared = Shared { runtime, directory: directory.into(), pods: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the runtime that runs the programs.
    pub fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.shared.runtime
    }

    /// Returns the network of the pods.
    pub fn network(&self) -> PodNetwork {
        PodNetwork { pods: self.clone() }
    }

    /// Returns whether the programs of a pod run, or are about to.
    pub fn contains(&self, uid: &str) -> bool {
        self.pods().contains_key(uid)
    }

    /// Runs a command in a container.
    ///
    /// # Errors
    /// [`RuntimeError::NotFound`] if the container does not run, else an error of the runtime.
    pub async fn exec(
        &self,
        uid: &str,
        container: &str,
        command: Command,
    ) -> Option<Result<Session, RuntimeError>> {
        match self.running(uid, container)? {
            Ok(id) => Some(self.shared.runtime.exec(&id, command).await),
            Err(error) => Some(Err(error)),
        }
    }

    /// Attaches to the streams of a container.
    ///
    /// # Errors
    /// As for [`exec`](Self::exec).
    pub async fn attach(&self, uid: &str, container: &str) -> Option<Result<Session, RuntimeError>> {
        match self.running(uid, container)? {
            Ok(id) => Some(self.shared.runtime.attach(&id).await),
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns the log files of a container.
    ///
    /// # Errors
    /// [`RuntimeError::NotFound`] if the container has never started.
    pub fn logs(&self, uid: &str, container: &str) -> Option<Result<ContainerLogs, RuntimeError>> {
        let pods = self.pods();
        let pod = pods.get(uid)?;
        let Some(known) = pod.containers.get(container) else {
            return Some(Err(RuntimeError::NotFound(format!("the log of container {container:?}"))));
        };
        let file = |attempt| self.log_file(&pod.key, uid, container, attempt);
        Some(Ok(ContainerLogs {
            current: file(known.attempt),
            previous: known.attempt.checked_sub(1).map(file),
            is_running: known.is_running,
        }))
    }

    /// Connects to a port of a pod, as a connection from inside the pod: `kubectl port-forward`.
    ///
    /// # Errors
    /// Nothing listens on the port, or the pod has no sandbox yet.
    pub async fn connect(&self, uid: &str, port: u16) -> Option<Result<TcpStream, RuntimeError>> {
        Some(match self.sandbox(uid)? {
            Ok(sandbox) => self.shared.runtime.connect(&sandbox, port).await,
            Err(error) => Err(error),
        })
    }

    /// Connects to a port at the address of a pod, as a connection from outside the pod.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect). A program that listens on the loopback address only is not reached.
    pub async fn connect_from_outside(
        &self,
        uid: &str,
        port: u16,
    ) -> Option<Result<TcpStream, RuntimeError>> {
        Some(match self.sandbox(uid)? {
            Ok(sandbox) => self.shared.runtime.connect_from_outside(&sandbox, port).await,
            Err(error) => Err(error),
        })
    }

    /// Makes a UDP socket that is connected to a port of a pod.
    ///
    /// # Errors
    /// The pod has no sandbox yet.
    async fn connect_udp(&self, uid: &str, port: u16) -> Option<Result<UdpSocket, RuntimeError>> {
        Some(match self.sandbox(uid)? {
            Ok(sandbox) => self.shared.runtime.connect_udp(&sandbox, port).await,
            Err(error) => Err(error),
        })
    }

    /// Returns the sandbox of a pod, or an error if the pod has no sandbox yet.
    pub(super) fn sandbox(&self, uid: &str) -> Option<Result<SandboxId, RuntimeError>> {
        let has_sandbox = self.pods().get(uid)?.has_sandbox;
        let missing = || RuntimeError::NotFound("the sandbox of the pod".to_owned());
        Some(has_sandbox.then(|| SandboxId(uid.to_owned())).ok_or_else(missing))
    }

    fn running(&self, uid: &str, container: &str) -> Option<Result<ContainerId, RuntimeError>> {
        let pods = self.pods();
        let known = pods.get(uid)?.containers.get(container).filter(|known| known.is_running);
        let missing = || RuntimeError::NotFound(format!("container {container:?}"));
        Some(known.map(|known| known.id.clone()).ok_or_else(missing))
    }

    fn pods(&self) -> MutexGuard<'_, BTreeMap<String, RunningPod>> {
        self.shared.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the directory of a pod's volumes and termination messages.
    pub(super) fn pod_directory(&self, uid: &str) -> PathBuf {
        self.shared.directory.join("pods").join(uid)
    }

    /// Returns the directory of a pod's logs.
    pub(super) fn log_directory(&self, key: &ObjectKey, uid: &str) -> PathBuf {
        let name = format!("{}_{}_{uid}", key.namespace().unwrap_or_default(), key.name());
        self.shared.directory.join("logs").join(name)
    }

    pub(super) fn log_file(&self, key: &ObjectKey, uid: &str, container: &str, attempt: u32) -> PathBuf {
        self.log_directory(key, uid).join(container).join(format!("{attempt}.log"))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// Registers a pod.
    pub(super) fn add(
        &self,
        uid: &str,
        key: &ObjectKey,
        address: Option<&str>,
        uses_host_network: bool,
        references: References,
    ) {
        let pod = RunningPod {
            key: key.clone(),
            address: address.and_then(|address| address.parse().ok()).filter(|_| !uses_host_network),
            has_sandbox: false,
            uses_host_network,
            containers: BTreeMap::new(),
            references,
        };
        self.pods().entry(uid.to_owned()).or_insert(pod);
    }

    /// Forgets a pod and returns the pod's key.
    pub(super) fn remove(&self, uid: &str) -> Option<ObjectKey> {
        self.pods().remove(uid).map(|pod| pod.key)
    }

    pub(super) fn set_sandbox(&self, uid: &str, has_sandbox: bool) {
        if let Some(pod) = self.pods().get_mut(uid) {
            pod.has_sandbox = has_sandbox;
            if !has_sandbox {
                pod.containers.values_mut().for_each(|container| container.is_running = false);
            }
        }
    }

    pub(super) fn set_started(&self, uid: &str, container: &str, id: ContainerId, attempt: u32) {
        if let Some(pod) = self.pods().get_mut(uid) {
            let started = RunningContainer { id, attempt, is_running: true };
            pod.containers.insert(container.to_owned(), started);
        }
    }

    pub(super) fn set_ended(&self, uid: &str, id: &ContainerId) {
        if let Some(pod) = self.pods().get_mut(uid) {
            let of_id = pod.containers.values_mut().filter(|container| container.id == *id);
            of_id.for_each(|container| container.is_running = false);
        }
    }

    /// Returns whether a namespace has a pod whose programs run.
    pub(super) fn has_pods_in(&self, namespace: &str) -> bool {
        self.pods().values().any(|pod| pod.key.namespace() == Some(namespace))
    }

    /// Returns the pods that refer to a ConfigMap or a Secret.
    pub(super) fn referring(&self, object: &ObjectKey, is_secret: bool) -> Vec<(String, ObjectKey)> {
        let refers = |pod: &RunningPod| {
            let names = if is_secret { &pod.references.secrets } else { &pod.references.config_maps };
            pod.key.namespace() == object.namespace() && names.contains(object.name())
        };
        let pods = self.pods();
        let found = pods.iter().filter(|(_, pod)| refers(pod));
        found.map(|(uid, pod)| (uid.clone(), pod.key.clone())).collect()
    }
}

impl fmt::Debug for RunningPods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningPods").field("directory", &self.shared.directory).finish_non_exhaustive()
    }
}

/// The network of the pods whose programs run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PodNetwork {
    pods: RunningPods,
}

impl PodNetwork {
    /// Connects to a port of the pod that has this address. Returns `None` if no program runs at the address: a caller outside of
    /// the cluster's network then dials the address itself.
    ///
    /// # Errors
    /// Nothing listens on the port.
    pub async fn connect(&self, address: IpAddr, port: u16) -> Option<Result<TcpStream, RuntimeError>> {
        match self.find(address)? {
            Place::Pod(uid) => self.pods.connect_from_outside(&uid, port).await,
            Place::Machine => Some(dial((Ipv4Addr::LOCALHOST, port)).await),
        }
    }

    /// Makes a UDP socket that is connected to a port of the pod that has this address. Returns `None` if no program runs at the address.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub async fn connect_udp(&self, address: IpAddr, port: u16) -> Option<Result<UdpSocket, RuntimeError>> {
        match self.find(address)? {
            Place::Pod(uid) => self.pods.connect_udp(&uid, port).await,
            Place::Machine => Some(dial_udp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await),
        }
    }

    fn find(&self, address: IpAddr) -> Option<Place> {
        let pods = self.pods.pods();
        let has_address = |pod: &RunningPod| {
            pod.has_sandbox
                && (pod.address == Some(address) || (pod.uses_host_network && address.to_string() == HOST_IP))
        };
        let (uid, pod) = pods.iter().find(|(_, pod)| has_address(pod))?;
        Some(if pod.uses_host_network { Place::Machine } else { Place::Pod(uid.clone()) })
    }
}

/// Where the programs of an address run.
enum Place {
    /// In the network of the pod with this uid.
    Pod(String),
    /// In the network of the machine.
    Machine,
}

/// Connects to an address of the machine.
pub(super) async fn dial(address: (impl Into<IpAddr>, u16)) -> Result<TcpStream, RuntimeError> {
    let (ip, port) = (address.0.into(), address.1);
    let stream = TcpStream::connect((ip, port)).await;
    stream.map_err(|error| RuntimeError::Io { doing: format!("dial tcp {ip}:{port}"), error })
}

/// Makes a UDP socket that is connected to an address that the machine reaches.
pub(super) async fn dial_udp(address: SocketAddr) -> Result<UdpSocket, RuntimeError> {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let io = |error| RuntimeError::Io { doing: format!("dial udp {address}"), error };
    let socket = UdpSocket::bind((any, 0)).await.map_err(io)?;
    socket.connect(address).await.map_err(io)?;
    Ok(socket)
}
