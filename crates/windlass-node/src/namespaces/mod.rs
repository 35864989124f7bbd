//! Runs pods in Linux namespaces, without root and without any tool.

mod container;
mod files;
mod link;
mod requirements;
mod state;
mod terminal;

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};

use self::container::Container;
#[cfg(feature = "cri")]
pub(crate) use self::files::hosts;
use self::link::Link;
use self::state::State;
use crate::cgroup::Cgroups;
use crate::helper::protocol::{Mapping, Operation, Refusal, SandboxSetup, SocketKind};
use crate::images::Images;
use crate::{
    Command, CommandOutput, ContainerId, ContainerSpec, Credential, Exit, Image, PullError, Runtime,
    RuntimeError, SandboxId, SandboxSpec, Session, sockets,
};

/// The settings of [`Namespaces`].
#[derive(Clone)]
pub struct NamespacesConfig {
    /// The program that calls [`launch`](crate::launch) first: usually this program.
    pub launcher: PathBuf,
    /// A directory for the files of pods. Several runtimes may use the same directory.
    pub state_dir: PathBuf,
    /// The images.
    pub images: Arc<dyn Images>,
}

impl fmt::Debug for NamespacesConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespacesConfig").field("launcher", &self.launcher).finish_non_exhaustive()
    }
}

struct Sandbox {
    spec: SandboxSpec,
    link: Arc<Link>,
}

/// Runs pods in Linux namespaces.
///
/// A process has its own user, mount, PID, network, IPC and UTS namespace. Pods reach each other at their addresses, through a network
/// namespace of the node. All other connections come in and go out through sockets that the runtime makes in the network of a
/// [pod](Runtime::connect) or of the [node](Runtime::listen). Without root, the process has one user ID, that of its specification;
/// supplementary groups are not set, and all files of the image belong to that user. New privileges are always forbidden.
pub struct Namespaces {
    config: NamespacesConfig,
    mapping: Mapping,
    isolated: tokio::sync::Mutex<Arc<Link>>,
    /// How many networks have been made after the first.
    networks: AtomicU64,
    host: tokio::sync::Mutex<Option<Arc<Link>>>,
    sandboxes: Mutex<HashMap<SandboxId, Arc<Sandbox>>>,
    containers: Mutex<HashMap<ContainerId, Arc<Container>>>,
    cgroups: Result<Cgroups, String>,
    state: State,
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespaces").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Namespaces {
    /// Starts the runtime.
    ///
    /// # Errors
    /// [`RuntimeError::Unsupported`] if this machine does not allow the namespaces. The text names the setting to change.
    pub async fn new(config: NamespacesConfig) -> Result<Self, RuntimeError> {
        let io = |error| RuntimeError::Io { doing: format!("create {}", config.state_dir.display()), error };
        let state = State::create(&config.state_dir).map_err(io)?;
        let directory = state.path().join("helper");
        std::fs::create_dir(&directory).map_err(io)?;
        let mut mapping = own_ranges();
        let mut started = Link::start(&config.launcher, &directory, mapping.clone(), false).await;
        if started.is_err() && mapping != Mapping::Single {
            mapping = Mapping::Single;
            started = Link::start(&config.launcher, &directory, mapping.clone(), false).await;
        }
        let link =
            started.map_err(|refusal| RuntimeError::Unsupported(requirements::explain(&refusal.text)))?;
        let name = format!("windlass-{}", state.path().file_name().unwrap_or_default().to_string_lossy());
        let cgroups = Cgroups::create(&name);
        if let Ok(cgroups) = &cgroups {
            cgroups.remember(state.path()).map_err(io)?;
        }
        Ok(Self {
            config,
            mapping,
            isolated: tokio::sync::Mutex::new(link),
            networks: AtomicU64::new(0),
            host: tokio::sync::Mutex::default(),
            sandboxes: Mutex::default(),
            containers: Mutex::default(),
            cgroups,
            state,
        })
    }

    /// Checks whether this machine allows the namespaces. The error says what is missing, and which setting to change.
    pub async fn check(config: NamespacesConfig) -> Result<(), RuntimeError> {
        Self::new(config).await.map(drop)
    }

    /// Returns why limits of memory, CPU and processes have no effect, or `None` if the limits have an effect.
    pub fn limits_missing(&self) -> Option<&str> {
        self.cgroups.as_ref().err().map(String::as_str)
    }

    /// Returns whether processes have one user ID only: supplementary groups and `fsGroup` have no effect.
    pub fn has_single_user(&self) -> bool {
        self.mapping == Mapping::Single
    }

    /// Returns a running helper. Starts another if the last has ended.
    async fn link(&self, host_network: bool) -> Result<Arc<Link>, Refusal> {
        let start = async |name: &str| {
            let directory = self.state.path().join(name);
            std::fs::create_dir_all(&directory).map_err(|error| Refusal::start(error.to_string()))?;
            Link::start(&self.config.launcher, &directory, self.mapping.clone(), host_network).await
        };
        if host_network {
            let mut host = self.host.lock().await;
            return match &*host {
                Some(link) if !link.is_closed() => Ok(Arc::clone(link)),
                _ => Ok(Arc::clone(host.insert(start("helper-host").await?))),
            };
        }
        let mut isolated = self.isolated.lock().await;
        if isolated.is_closed() {
            *isolated = start("helper").await?;
            self.networks.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Arc::clone(&isolated))
    }

    fn sandbox(&self, id: &SandboxId) -> Result<Arc<Sandbox>, RuntimeError> {
        let found = self.sandboxes.lock().get(id).cloned();
        found.ok_or_else(|| RuntimeError::NotFound(format!("sandbox {}", id.0)))
    }

    fn container(&self, id: &ContainerId) -> Result<Arc<Container>, RuntimeError> {
        let found = self.containers.lock().get(id).cloned();
        found.ok_or_else(|| RuntimeError::NotFound(format!("container {}", id.0)))
    }

    fn sandbox_directory(&self, id: &SandboxId) -> PathBuf {
        self.state.path().join("sandboxes").join(&id.0)
    }

    /// Creates the files and the namespaces of a sandbox. Returns the helper that has the namespaces.
    async fn make_sandbox(
        &self,
        directory: &Path,
        spec: &SandboxSpec,
        ranges: Vec<(IpAddr, u8)>,
    ) -> Result<Arc<Link>, RuntimeError> {
        // The files of an attempt that was given up.
        let _ = state::remove_tree(directory);
        files::create(directory, spec)?;
        let link = self.link(spec.host_network).await?;
        let setup = SandboxSetup {
            sandbox: spec.id.0.clone(),
            host_name: spec.host_name.clone(),
            address: spec.address,
            ranges,
        };
        link.ask(Operation::CreateSandbox(setup), Vec::new()).await?;
        Ok(link)
    }

    /// Makes a socket in the network of a sandbox, or of the node.
    async fn socket(
        &self,
        sandbox: Option<&SandboxId>,
        kind: SocketKind,
        address: IpAddr,
    ) -> Result<OwnedFd, RuntimeError> {
        let link = match sandbox {
            Some(id) => Arc::clone(&self.sandbox(id)?.link),
            None => self.link(false).await?,
        };
        let sandbox = sandbox.map(|id| id.0.clone());
        let operation = Operation::Socket { sandbox, kind, version_6: address.is_ipv6() };
        let socket = link.ask(operation, Vec::new()).await?;
        socket.ok_or_else(|| RuntimeError::Start("the helper sent no socket".into()))
    }

    /// Connects to an address in the network of a sandbox.
    async fn dial(&self, sandbox: &SandboxId, address: IpAddr, port: u16) -> Result<TcpStream, RuntimeError> {
        let to = SocketAddr::new(address, port);
        let socket = self.socket(Some(sandbox), SocketKind::Stream, address).await?;
        let connected = TcpSocket::from_std_stream(socket.into()).connect(to).await;
        connected.map_err(|error| RuntimeError::Io { doing: format!("dial tcp {to}"), error })
    }
}

/// Returns the mapping of this process's user namespace to itself for root, and the mapping of one user for others.
fn own_ranges() -> Mapping {
    let ranges = |path: &str| -> Option<Vec<(u32, u32)>> {
        let text = std::fs::read_to_string(path).ok()?;
        let line = |line: &str| {
            let mut fields = line.split_whitespace();
            Some((fields.next()?.parse().ok()?, fields.nth(1)?.parse().ok()?))
        };
        text.lines().map(line).collect()
    };
    match (rustix::process::geteuid().is_root(), ranges("/proc/self/uid_map"), ranges("/proc/self/gid_map")) {
        (true, Some(users), Some(groups)) => Mapping::Ranges { users, groups },
        _ => Mapping::Single,
    }
}

/// Parses `10.0.0.0/16`.
pub(crate) fn range(text: &str) -> Result<(IpAddr, u8), RuntimeError> {
    let parsed = text.split_once('/').and_then(|(address, prefix)| {
        let (address, prefix): (IpAddr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
        (prefix <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, prefix))
    });
    parsed.ok_or_else(|| RuntimeError::Config(format!("{text} is no range of addresses such as 10.0.0.0/16")))
}

/// Checks that an ID can be the name of a directory.
pub(crate) fn check_id(id: &SandboxId) -> Result<(), RuntimeError> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if id.0.is_empty() || id.0.len() > 128 || id.0.starts_with('.') || !id.0.chars().all(allowed) {
        return Err(RuntimeError::Config(format!("{:?} is no ID of a sandbox", id.0)));
    }
    Ok(())
}

#[async_trait]
impl Runtime for Namespaces {
    fn scheme(&self) -> &'static str {
        "process"
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        self.config.images.find(reference).await
    }

    fn may_pull(&self, reference: &str) -> bool {
        self.config.images.may_pull(reference)
    }

    async fn pull(&self, reference: &str, credentials: &[Credential]) -> Result<Image, PullError> {
        self.config.images.pull(reference, credentials).await
    }

    async fn create_sandbox(&self, spec: SandboxSpec) -> Result<(), RuntimeError> {
        check_id(&spec.id)?;
        let ranges = spec.ranges.iter().map(|text| range(text)).collect::<Result<_, _>>()?;
        if self.sandboxes.lock().contains_key(&spec.id) {
            return Err(RuntimeError::Start(format!("sandbox {} exists", spec.id.0)));
        }
        let directory = self.sandbox_directory(&spec.id);
        let made = self.make_sandbox(&directory, &spec, ranges).await;
        if made.is_err() {
            // A directory that stays would refuse the next attempt.
            let _ = state::remove_tree(&directory);
        }
        self.sandboxes.lock().insert(spec.id.clone(), Arc::new(Sandbox { spec, link: made? }));
        Ok(())
    }

    async fn remove_sandbox(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        if check_id(id).is_err() {
            return Ok(());
        }
        // The sandbox is forgotten at the end, so that a removal that fails can be tried again. A container may have been started
        // during an earlier removal.
        if let Ok(sandbox) = self.sandbox(id) {
            let _ = sandbox.link.ask(Operation::RemoveSandbox { sandbox: id.0.clone() }, Vec::new()).await;
        }
        let containers: Vec<_> = {
            let containers = self.containers.lock();
            containers
                .iter()
                .filter(|(_, container)| container.sandbox() == id)
                .map(|(id, _)| id.clone())
                .collect()
        };
        for container in containers {
            // Another removal of the sandbox may have been first.
            let _ = self.wait(&container).await;
            self.containers.lock().remove(&container);
        }
        let directory = self.sandbox_directory(id);
        let removed = tokio::task::spawn_blocking(move || state::remove_tree(&directory)).await;
        removed.map_err(std::io::Error::other).flatten().map_err(|error| RuntimeError::Io {
            doing: format!("remove the files of sandbox {}", id.0),
            error,
        })?;
        self.sandboxes.lock().remove(id);
        Ok(())
    }

    async fn shut_down(&self) {
        let all: Vec<SandboxId> = self.sandboxes.lock().keys().cloned().collect();
        for removed in futures::future::join_all(all.iter().map(|id| self.remove_sandbox(id))).await {
            if let Err(error) = removed {
                tracing::warn!(%error, "a sandbox was not removed");
            }
        }
        self.state.remove();
    }

    async fn start(&self, sandbox: &SandboxId, spec: ContainerSpec) -> Result<ContainerId, RuntimeError> {
        let found = self.sandbox(sandbox)?;
        let id = crate::random_id().map_err(|error| RuntimeError::Start(error.to_string()))?;
        let directory = self.sandbox_directory(sandbox).join("containers").join(&id);
        let started = Container::start(container::Start {
            id: &id,
            sandbox: &found.spec,
            link: &found.link,
            images: &*self.config.images,
            cgroups: self.cgroups.as_ref().ok(),
            directory: &directory,
            shared: self.sandbox_directory(sandbox),
            spec,
        })
        .await;
        match started {
            Ok(container) => {
                let id = ContainerId(id);
                self.containers.lock().insert(id.clone(), container);
                Ok(id)
            }
            Err(error) => {
                let _ = tokio::task::spawn_blocking(move || state::remove_tree(&directory)).await;
                // All sandboxes of a helper end with the helper.
                let has_ended = found.link.is_closed();
                Err(if has_ended { RuntimeError::SandboxEnded(sandbox.0.clone()) } else { error })
            }
        }
    }

    async fn wait(&self, container: &ContainerId) -> Result<Exit, RuntimeError> {
        self.container(container)?.wait().await
    }

    async fn signal(&self, container: &ContainerId, signal: i32) -> Result<(), RuntimeError> {
        let found = self.container(container)?;
        if found.has_ended() {
            return Ok(());
        }
        let operation = Operation::Signal { key: container.0.clone(), signal };
        match found.link().ask(operation, Vec::new()).await {
            Ok(_) => Ok(()),
            Err(_) if found.has_ended() || found.link().is_closed() => Ok(()),
            Err(refusal) => Err(refusal.into()),
        }
    }

    fn stop_signal(&self, container: &ContainerId) -> i32 {
        self.container(container).map_or(15, |container| container.stop_signal())
    }

    async fn remove(&self, container: &ContainerId) -> Result<(), RuntimeError> {
        let Some(found) = self.containers.lock().get(container).cloned() else { return Ok(()) };
        if !found.has_ended() {
            return Err(RuntimeError::Start(format!(
                "container {} is running: end the container first",
                container.0
            )));
        }
        self.containers.lock().remove(container);
        let directory = found.directory().to_owned();
        let removed = tokio::task::spawn_blocking(move || state::remove_tree(&directory)).await;
        removed.map_err(std::io::Error::other).flatten().map_err(|error| RuntimeError::Io {
            doing: format!("remove the files of container {}", container.0),
            error,
        })
    }

    async fn exec(&self, container: &ContainerId, command: Command) -> Result<Session, RuntimeError> {
        self.container(container)?.exec(command).await
    }

    async fn exec_sync(
        &self,
        container: &ContainerId,
        words: Vec<String>,
        limit: Duration,
    ) -> Result<Option<CommandOutput>, RuntimeError> {
        self.container(container)?.exec_sync(words, limit).await
    }

    async fn attach(&self, container: &ContainerId) -> Result<Session, RuntimeError> {
        self.container(container)?.attach().await
    }

    async fn connect(&self, sandbox: &SandboxId, port: u16) -> Result<TcpStream, RuntimeError> {
        let own = self.sandbox(sandbox)?.spec.address;
        let loopback: IpAddr =
            if own.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        match self.dial(sandbox, loopback, port).await {
            Err(RuntimeError::Io { .. }) => self.dial(sandbox, own, port).await,
            dialled => dialled,
        }
    }

    async fn connect_from_outside(&self, sandbox: &SandboxId, port: u16) -> Result<TcpStream, RuntimeError> {
        let found = self.sandbox(sandbox)?;
        if found.spec.host_network {
            // The machine does not have the address of the sandbox.
            return self.connect(sandbox, port).await;
        }
        self.dial(sandbox, found.spec.address, port).await
    }

    async fn connect_udp(&self, sandbox: &SandboxId, port: u16) -> Result<UdpSocket, RuntimeError> {
        let own = self.sandbox(sandbox)?.spec.address;
        let socket = self.socket(Some(sandbox), SocketKind::Datagram, own).await?;
        sockets::connect_udp(socket, SocketAddr::new(own, port)).await
    }

    fn network(&self) -> u64 {
        self.networks.load(Ordering::Relaxed)
    }

    async fn listen(&self, address: SocketAddr) -> Result<TcpListener, RuntimeError> {
        sockets::listen(self.socket(None, SocketKind::Stream, address.ip()).await?, address)
    }

    async fn bind(&self, address: SocketAddr) -> Result<UdpSocket, RuntimeError> {
        sockets::bind(self.socket(None, SocketKind::Datagram, address.ip()).await?, address)
    }
}
