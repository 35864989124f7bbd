//! A runtime without programs: a test chooses the images, the listeners, and the end of each container.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use async_trait::async_trait;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use windlass_node::{
    Command, ContainerId, ContainerSpec, Credential, Exit, Image, PullError, Runtime, RuntimeError,
    SandboxId, SandboxSpec, Session,
};

#[derive(Default)]
pub(crate) struct FakeRuntime {
    pub(crate) state: Mutex<State>,
    /// The operations that wait, by name.
    held: watch::Sender<BTreeSet<&'static str>>,
}

#[derive(Default)]
pub(crate) struct State {
    /// The images of this machine.
    pub(crate) images: BTreeSet<String>,
    /// Images that can be pulled.
    pub(crate) remote: BTreeSet<String>,
    pub(crate) credentials: Vec<Credential>,
    pub(crate) sandboxes: BTreeMap<String, SandboxSpec>,
    pub(crate) removed: BTreeSet<String>,
    pub(crate) containers: BTreeMap<String, FakeContainer>,
    pub(crate) signals: Vec<(String, i32)>,
    /// Where a port inside of a sandbox really is.
    pub(crate) ports: BTreeMap<u16, SocketAddr>,
    /// Where a port inside of a sandbox really receives datagrams.
    pub(crate) datagram_ports: BTreeMap<u16, SocketAddr>,
    /// Where an address of the node really listens.
    pub(crate) listeners: BTreeMap<SocketAddr, SocketAddr>,
    /// Where an address of the node really receives datagrams.
    pub(crate) sockets: BTreeMap<SocketAddr, SocketAddr>,
    /// The number of the network.
    pub(crate) network: u64,
    /// The operations that have begun, with the name of the operation and the sandbox.
    pub(crate) begun: BTreeSet<(&'static str, String)>,
    /// The operations that have ended.
    pub(crate) ended: BTreeSet<(&'static str, String)>,
}

#[derive(Clone)]
pub(crate) struct FakeContainer {
    pub(crate) sandbox: String,
    pub(crate) spec: ContainerSpec,
    end: watch::Sender<Option<i32>>,
}

impl FakeRuntime {
    pub(crate) fn new(images: &[&str]) -> Arc<Self> {
        let runtime = Self::default();
        runtime.state().images = images.iter().map(ToString::to_string).collect();
        Arc::new(runtime)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Holds the operations with this name, until [`release`](Self::release).
    pub(crate) fn hold(&self, operation: &'static str) {
        self.held.send_if_modified(|held| held.insert(operation));
    }

    pub(crate) fn release(&self, operation: &'static str) {
        self.held.send_if_modified(|held| held.remove(operation));
    }

    async fn begin(&self, operation: &'static str, sandbox: &str) {
        self.state().begun.insert((operation, sandbox.to_owned()));
        let mut held = self.held.subscribe();
        held.wait_for(|held| !held.contains(operation)).await.unwrap();
    }

    /// Returns whether a sandbox, or a container of the sandbox, is left.
    pub(crate) fn has(&self, sandbox: &str) -> bool {
        let state = self.state();
        let runs = |known: &FakeContainer| known.sandbox == sandbox && known.end.borrow().is_none();
        state.sandboxes.contains_key(sandbox) || state.containers.values().any(runs)
    }

    /// Returns the last container with this name, and the container's ID.
    pub(crate) fn container(&self, name: &str) -> Option<(String, FakeContainer)> {
        let state = self.state();
        let mut of_name: Vec<_> =
            state.containers.iter().filter(|(_, known)| known.spec.name == name).collect();
        of_name.sort_by_key(|(_, known)| known.spec.attempt);
        of_name.last().map(|(id, known)| ((*id).clone(), (*known).clone()))
    }

    /// Ends a container.
    pub(crate) fn end(&self, id: &str, code: i32) {
        if let Some(container) = self.state().containers.get(id) {
            container.end.send_if_modified(|end| end.replace(code).is_none());
        }
    }
}

fn image(reference: &str) -> Image {
    Image { id: format!("sha256:{reference}"), digested: format!("{reference}@sha256:0"), size: 1 }
}

#[async_trait]
impl Runtime for FakeRuntime {
    fn scheme(&self) -> &'static str {
        "process"
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        Ok(self.state().images.contains(reference).then(|| image(reference)))
    }

    fn may_pull(&self, reference: &str) -> bool {
        reference.starts_with("localhost:5000/")
    }

    async fn pull(&self, reference: &str, credentials: &[Credential]) -> Result<Image, PullError> {
        let mut state = self.state();
        state.credentials.extend_from_slice(credentials);
        if !state.remote.contains(reference) {
            return Err(PullError::NotFound(format!("{reference}: manifest unknown")));
        }
        state.images.insert(reference.to_owned());
        Ok(image(reference))
    }

    async fn create_sandbox(&self, spec: SandboxSpec) -> Result<(), RuntimeError> {
        let id = spec.id.0.clone();
        self.begin("create_sandbox", &id).await;
        let mut state = self.state();
        state.sandboxes.insert(id.clone(), spec);
        state.ended.insert(("create_sandbox", id));
        Ok(())
    }

    async fn remove_sandbox(&self, sandbox: &SandboxId) -> Result<(), RuntimeError> {
        let mut state = self.state();
        state.sandboxes.remove(&sandbox.0);
        state.removed.insert(sandbox.0.clone());
        let own = state.containers.values().filter(|container| container.sandbox == sandbox.0);
        own.for_each(|container| {
            container.end.send_if_modified(|end| end.is_none() && end.replace(137).is_none());
        });
        Ok(())
    }

    async fn start(&self, sandbox: &SandboxId, spec: ContainerSpec) -> Result<ContainerId, RuntimeError> {
        self.begin("start", &sandbox.0).await;
        let mut state = self.state();
        state.ended.insert(("start", sandbox.0.clone()));
        let id = format!("{:064x}", state.containers.len() + 1);
        let container = FakeContainer { sandbox: sandbox.0.clone(), spec, end: watch::channel(None).0 };
        state.containers.insert(id.clone(), container);
        Ok(ContainerId(id))
    }

    async fn wait(&self, container: &ContainerId) -> Result<Exit, RuntimeError> {
        let mut end = self.state().containers[&container.0].end.subscribe();
        let started_at = SystemTime::now();
        let code = end.wait_for(Option::is_some).await.unwrap().unwrap();
        let signal = (code > 128).then(|| code - 128);
        Ok(Exit { code, signal, out_of_memory: false, started_at, finished_at: SystemTime::now() })
    }

    async fn signal(&self, container: &ContainerId, signal: i32) -> Result<(), RuntimeError> {
        self.state().signals.push((container.0.clone(), signal));
        self.end(&container.0, 128 + signal);
        Ok(())
    }

    fn stop_signal(&self, _: &ContainerId) -> i32 {
        15
    }

    async fn remove(&self, container: &ContainerId) -> Result<(), RuntimeError> {
        self.state().containers.remove(&container.0);
        Ok(())
    }

    async fn exec(&self, _: &ContainerId, command: Command) -> Result<Session, RuntimeError> {
        let now = SystemTime::now();
        let code = i32::from(command.words != ["true"]);
        let exit = Exit { code, signal: None, out_of_memory: false, started_at: now, finished_at: now };
        let exit = Box::pin(async move { Ok(exit) });
        Ok(Session { stdin: None, stdout: None, stderr: None, resize: None, exit })
    }

    async fn attach(&self, container: &ContainerId) -> Result<Session, RuntimeError> {
        Err(RuntimeError::NotFound(container.0.clone()))
    }

    async fn connect(&self, _: &SandboxId, port: u16) -> Result<TcpStream, RuntimeError> {
        let address = self.state().ports.get(&port).copied();
        let refused = || RuntimeError::Io {
            doing: "dial".to_owned(),
            error: std::io::ErrorKind::ConnectionRefused.into(),
        };
        let address = address.ok_or_else(refused)?;
        TcpStream::connect(address)
            .await
            .map_err(|error| RuntimeError::Io { doing: "dial".to_owned(), error })
    }

    async fn connect_udp(&self, _: &SandboxId, port: u16) -> Result<UdpSocket, RuntimeError> {
        let address = self.state().datagram_ports.get(&port).copied();
        let address = address.ok_or_else(|| RuntimeError::NotFound("the port".to_owned()))?;
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(address).await.unwrap();
        Ok(socket)
    }

    fn network(&self) -> u64 {
        self.state().network
    }

    async fn listen(&self, address: SocketAddr) -> Result<TcpListener, RuntimeError> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(|error| RuntimeError::Io { doing: "listen".to_owned(), error })?;
        let real = listener.local_addr().unwrap();
        self.state().listeners.insert(address, real);
        Ok(listener)
    }

    async fn bind(&self, address: SocketAddr) -> Result<UdpSocket, RuntimeError> {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        self.state().sockets.insert(address, socket.local_addr().unwrap());
        Ok(socket)
    }
}
