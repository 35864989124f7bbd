//! Runs pods with a container runtime of this machine, such as containerd, by the Container Runtime Interface.

mod client;
mod containers;
mod images;
mod info;
mod message;
mod network;
mod owner;
mod request;
mod sandboxes;
mod session;
mod spdy;
mod status;

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use windlass_image::Store;

use self::client::{ANSWER, Client, RUNTIME};
use self::containers::{Container, Containers, Started};
use self::images::CriImages;
use self::message::{
    AttachRequest, Empty, ExecRequest, ExecSyncRequest, ExecSyncResponse, Id, StatusResponse,
    StopContainerRequest, Url, VersionResponse,
};
use self::network::PodNetwork;
use self::owner::Owner;
use self::sandboxes::{Sandbox, Sandboxes};
use self::session::Streams;
use crate::helper::protocol::SocketKind;
use crate::images::StoreImages;
use crate::session::MOST_OUTPUT;
use crate::{
    Command, CommandOutput, ContainerId, ContainerSpec, Credential, Exit, Image, PullError, Runtime,
    RuntimeError, SandboxId, SandboxSpec, Session, sockets,
};

/// The signal that ends all processes of a container.
const KILL: i32 = 9;

/// Returns the answer with the begin of each output.
fn output_of(answer: ExecSyncResponse) -> CommandOutput {
    let ExecSyncResponse { stdout: mut text, mut stderr, exit_code } = answer;
    text.truncate(MOST_OUTPUT);
    stderr.truncate(MOST_OUTPUT);
    text.extend(stderr);
    CommandOutput { code: exit_code, text }
}

/// The settings of [`Cri`].
#[derive(Clone, Debug)]
pub struct CriConfig {
    /// The socket of the container runtime: `unix:///run/containerd/containerd.sock`.
    pub endpoint: String,
    /// A directory for the files of sandboxes. The caller removes the directory.
    pub directory: PathBuf,
    /// The images of the user, which the container runtime takes over when a container needs an image.
    pub store: Store,
    /// Says which images may be pulled. The images are those of `store`.
    pub images: StoreImages,
}

/// Runs pods with a container runtime of this machine, by the Container Runtime Interface (CRI), version 1.
///
/// The container runtime pulls images, keeps the files, and runs the programs. The network plugin of the container runtime gives each pod a
/// network. A second device, which needs root, connects the pod with the other pods and with the addresses of services. New privileges are always forbidden,
/// and the system calls of programs are restricted by the default profile of the container runtime.
///
/// The differences from the other runtimes:
///
/// - Sandboxes outlive this process. [`shut_down`](Runtime::shut_down) removes the sandboxes at the end, and [`new`](Self::new) removes the sandboxes that a killed process
///   has left over.
/// - The limit of processes has an effect with control groups of version 2 only.
/// - A container that ended by a signal has the exit code 128 + the signal, and no [`signal`](Exit::signal).
pub struct Cri {
    client: Arc<Client>,
    version: VersionResponse,
    images: CriImages,
    sandboxes: Sandboxes,
    containers: Arc<Containers>,
    closed: AtomicBool,
}

impl fmt::Debug for Cri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cri").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Cri {
    /// Connects to the container runtime, and removes the sandboxes that killed processes have left over.
    ///
    /// # Errors
    /// [`RuntimeError::Unsupported`] if the endpoint is no socket, if this process is not root, or if the container runtime is not ready. The text
    /// says which.
    pub async fn new(config: CriConfig) -> Result<Self, RuntimeError> {
        if !rustix::process::geteuid().is_root() {
            return Err(RuntimeError::Unsupported(
                "a container runtime is used by root only, because the network of each pod gets a second device"
                    .into(),
            ));
        }
        let client = Arc::new(Client::new(&config.endpoint)?);
        let version: VersionResponse = client.runtime("Version", &Empty {}).await?;
        check_ready(&client.runtime("Status", &Empty {}).await?)?;
        let owner = Owner::new()?;
        let sandboxes =
            Sandboxes::new(Arc::clone(&client), owner.clone(), config.directory, PodNetwork::new().await?);
        let left_over = sandboxes.remove_left_over().await?;
        if left_over > 0 {
            tracing::info!(sandboxes = left_over, "the sandboxes of clusters that were killed are removed");
        }
        tracing::debug!(
            owner = owner.name(),
            runtime = version.runtime_name,
            "connected to the container runtime"
        );
        Ok(Self {
            images: CriImages::new(Arc::clone(&client), config.store, config.images),
            containers: Containers::new(Arc::clone(&client), owner),
            client,
            version,
            sandboxes,
            closed: AtomicBool::new(false),
        })
    }

    async fn remove_sandboxes(&self) -> Result<(), RuntimeError> {
        // A sandbox may have been in the making.
        while self.sandboxes.remove_all().await? > 0 {}
        Ok(())
    }

    fn check_open(&self) -> Result<(), RuntimeError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(RuntimeError::Unsupported("the runtime is closed".into()));
        }
        Ok(())
    }

    async fn create_and_start(
        &self,
        sandbox: &Sandbox,
        spec: &ContainerSpec,
    ) -> Result<Started, RuntimeError> {
        let image = self.images.prepare(&spec.image).await?;
        if let Some(parent) = spec.log.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| RuntimeError::Io { doing: format!("create {}", parent.display()), error })?;
        }
        let surroundings = request::Surroundings {
            sandbox: &sandbox.id,
            sandbox_config: &sandbox.config,
            user: &image.user,
            hosts: &sandbox.hosts,
            host_network: sandbox.spec.host_network,
        };
        let request = request::container(spec, &surroundings)?;
        let created: Id = self.client.runtime("CreateContainer", &request).await?;
        if let Err(error) = self.client.runtime::<_, Empty>("StartContainer", &created).await {
            let _ = self.client.runtime::<_, Empty>("RemoveContainer", &created).await;
            return Err(error.into());
        }
        Ok(Started {
            id: ContainerId(created.id),
            sandbox: sandbox.spec.id.clone(),
            log: spec.log.clone(),
            terminal: spec.terminal,
            stdin: spec.stdin,
            stop_signal: image.stop_signal.unwrap_or(15),
        })
    }

    /// Returns a container that runs.
    fn running(&self, id: &ContainerId) -> Result<Arc<Container>, RuntimeError> {
        let container = self.containers.get(id)?;
        if container.has_ended() {
            return Err(RuntimeError::NotFound(format!("running container {}", id.0)));
        }
        Ok(container)
    }

    /// Sends a signal to the first process of a container. The CRI has no method for that.
    async fn signal_process(&self, id: &ContainerId, signal: i32) -> Result<(), RuntimeError> {
        let signal = Signal::from_named_raw(signal)
            .ok_or_else(|| RuntimeError::Config(format!("invalid signal {signal}")))?;
        let io = |error: rustix::io::Errno| RuntimeError::Io {
            doing: format!("send a signal to container {}", id.0),
            error: error.into(),
        };
        let Some(number) = self.containers.pid(id).await? else { return Ok(()) };
        let Some(pid) = i32::try_from(number).ok().and_then(Pid::from_raw) else { return Ok(()) };
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(()),
            opened => opened.map_err(io)?,
        };
        // The container still has the process that was opened: the PID was not used again.
        if self.containers.pid(id).await? != Some(number) {
            return Ok(());
        }
        match pidfd_send_signal(&process, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => sent.map_err(io),
        }
    }
}

/// Checks that the container runtime and its network are ready.
fn check_ready(response: &StatusResponse) -> Result<(), RuntimeError> {
    let conditions = response.status.iter().flat_map(|status| &status.conditions);
    match conditions.into_iter().find(|condition| !condition.status && condition.kind.ends_with("Ready")) {
        None => Ok(()),
        Some(condition) => Err(RuntimeError::Unsupported(format!(
            "the container runtime is not ready: {} is false: {}",
            condition.kind, condition.message
        ))),
    }
}

#[async_trait]
impl Runtime for Cri {
    fn scheme(&self) -> &'static str {
        match self.version.runtime_name.as_str() {
            "containerd" => "containerd",
            "cri-o" => "cri-o",
            _ => "cri",
        }
    }

    fn version(&self) -> String {
        format!("{}://{}", self.scheme(), self.version.runtime_version.trim_start_matches('v'))
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        self.images.find(reference).await
    }

    fn may_pull(&self, reference: &str) -> bool {
        self.images.may_pull(reference)
    }

    async fn pull(&self, reference: &str, credentials: &[Credential]) -> Result<Image, PullError> {
        self.images.pull(reference, credentials).await
    }

    async fn create_sandbox(&self, spec: SandboxSpec) -> Result<(), RuntimeError> {
        self.check_open()?;
        self.sandboxes.create(spec).await
    }

    async fn remove_sandbox(&self, sandbox: &SandboxId) -> Result<(), RuntimeError> {
        self.sandboxes.stop(sandbox).await?;
        // The ends of the containers are known until the removal.
        self.containers.look().await?;
        self.sandboxes.remove(sandbox).await?;
        self.containers.forget_sandbox(sandbox);
        Ok(())
    }

    async fn start(&self, sandbox: &SandboxId, spec: ContainerSpec) -> Result<ContainerId, RuntimeError> {
        self.check_open()?;
        let sandbox = self.sandboxes.get(sandbox)?;
        let started = self.create_and_start(&sandbox, &spec).await?;
        let id = started.id.clone();
        self.containers.add(started);
        Ok(id)
    }

    async fn wait(&self, container: &ContainerId) -> Result<Exit, RuntimeError> {
        let ended = self.containers.get(container)?.wait();
        ended.await
    }

    async fn signal(&self, container: &ContainerId, signal: i32) -> Result<(), RuntimeError> {
        if self.containers.get(container)?.has_ended() {
            return Ok(());
        }
        if signal != KILL {
            return self.signal_process(container, signal).await;
        }
        let request = StopContainerRequest { id: container.0.clone(), timeout: 0 };
        match self.client.runtime::<_, Empty>("StopContainer", &request).await {
            Err(error) if error.code != client::NOT_FOUND => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn stop_signal(&self, container: &ContainerId) -> i32 {
        self.containers.get(container).map_or(15, |container| container.stop_signal)
    }

    async fn remove(&self, container: &ContainerId) -> Result<(), RuntimeError> {
        let Ok(found) = self.containers.get(container) else { return Ok(()) };
        if !found.has_ended() {
            return Err(RuntimeError::Start(format!(
                "container {} is running: end the container first",
                container.0
            )));
        }
        match self.client.runtime::<_, Empty>("RemoveContainer", &Id { id: container.0.clone() }).await {
            Err(error) if error.code != client::NOT_FOUND => return Err(error.into()),
            _ => {}
        }
        self.containers.forget(container);
        Ok(())
    }

    async fn exec(&self, container: &ContainerId, command: Command) -> Result<Session, RuntimeError> {
        self.running(container)?;
        let has_terminal = command.terminal.is_some();
        let request = ExecRequest {
            container: container.0.clone(),
            command: command.words,
            terminal: has_terminal,
            stdin: command.stdin,
            stdout: true,
            stderr: !has_terminal,
        };
        let url: Url = self.client.runtime("Exec", &request).await?;
        session::open(
            &url.url,
            Streams { stdin: command.stdin, terminal: has_terminal, size: command.terminal },
        )
        .await
    }

    /// The container runtime kills the command after `limit`, rounded up to seconds.
    async fn exec_sync(
        &self,
        container: &ContainerId,
        words: Vec<String>,
        limit: Duration,
    ) -> Result<Option<CommandOutput>, RuntimeError> {
        self.running(container)?;
        let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
        let request = ExecSyncRequest {
            container: container.0.clone(),
            command: words,
            timeout: i64::try_from(seconds.max(1)).unwrap_or(i64::MAX),
        };
        let wait = Duration::from_secs(seconds).saturating_add(ANSWER);
        let answer = self.client.call::<_, ExecSyncResponse>(RUNTIME, "ExecSync", &request, wait).await;
        match answer {
            Ok(answer) => Ok(Some(output_of(answer))),
            Err(error) if error.is_timeout() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn attach(&self, container: &ContainerId) -> Result<Session, RuntimeError> {
        let found = self.running(container)?;
        let request = AttachRequest {
            container: container.0.clone(),
            stdin: found.stdin,
            terminal: found.terminal,
            stdout: true,
            stderr: !found.terminal,
        };
        let url: Url = self.client.runtime("Attach", &request).await?;
        let streams = Streams { stdin: found.stdin, terminal: found.terminal, size: None };
        let mut session = session::open(&url.url, streams).await?;
        let (ended, connection) = (found.wait(), session.exit);
        session.exit = Box::pin(async move {
            let exit = ended.await;
            // The connection is open until the container has ended.
            drop(connection);
            exit
        });
        Ok(session)
    }

    async fn connect(&self, sandbox: &SandboxId, port: u16) -> Result<TcpStream, RuntimeError> {
        let sandbox = self.sandboxes.get(sandbox)?;
        let own = sandbox.spec.address;
        let loopback: IpAddr =
            if own.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        let mut first = None;
        for address in [loopback, own] {
            let socket = sandbox.network.socket(SocketKind::Stream, address).await?;
            match TcpSocket::from_std_stream(socket.into()).connect(SocketAddr::new(address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => first = first.or(Some(error)),
            }
        }
        let error = first.unwrap_or_else(|| ErrorKind::ConnectionRefused.into());
        Err(RuntimeError::Io { doing: format!("dial tcp {}", SocketAddr::new(own, port)), error })
    }

    async fn connect_udp(&self, sandbox: &SandboxId, port: u16) -> Result<UdpSocket, RuntimeError> {
        let sandbox = self.sandboxes.get(sandbox)?;
        let own = sandbox.spec.address;
        let socket = sandbox.network.socket(SocketKind::Datagram, own).await?;
        sockets::connect_udp(socket, SocketAddr::new(own, port)).await
    }

    async fn listen(&self, address: SocketAddr) -> Result<TcpListener, RuntimeError> {
        let socket = self.sandboxes.node().socket(SocketKind::Stream, address.ip()).await?;
        sockets::listen(socket, address)
    }

    async fn bind(&self, address: SocketAddr) -> Result<UdpSocket, RuntimeError> {
        let socket = self.sandboxes.node().socket(SocketKind::Datagram, address.ip()).await?;
        sockets::bind(socket, address)
    }

    /// Removes all sandboxes of this runtime, and the images that came from the local store. No sandbox can be created afterwards.
    async fn shut_down(&self) {
        self.closed.store(true, Ordering::SeqCst);
        if let Err(error) = self.remove_sandboxes().await {
            tracing::warn!(%error, "sandboxes are left over in the container runtime; the next runtime removes the sandboxes");
        }
        self.images.remove_imported().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe of a program that logs much must not keep megabytes.
    #[test]
    fn the_begin_of_each_output_is_kept() {
        let (stdout, stderr) = (vec![b'o'; 20 << 10], vec![b'e'; 20 << 10]);
        let output = output_of(ExecSyncResponse { stdout, stderr, exit_code: 3 });
        assert_eq!((output.code, output.text.len()), (3, 20 << 10));
        assert_eq!((output.text[MOST_OUTPUT - 1], output.text[MOST_OUTPUT]), (b'o', b'e'));
    }
}
