//! The interface between a kubelet and the programs of pods.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::{
    Command, CommandOutput, ContainerId, ContainerSpec, Credential, Exit, Image, PullError, RuntimeError,
    SandboxId, SandboxSpec, Session,
};

/// Runs the programs of pods.
///
/// All state of a `Runtime` ends with [`shut_down`](Self::shut_down), or at the latest with the process. After `kill -9` of the process, each
/// runtime leaves something else behind: `Namespaces` files, until the next `Namespaces` starts in the same directory; `Plain` the programs;
/// `Cri` the sandboxes with their containers, until the next `Cri` starts on the same container runtime.
#[async_trait]
pub trait Runtime: Send + Sync + 'static {
    /// Returns the scheme of the container IDs, such as `process` for `process://4f1c…`.
    fn scheme(&self) -> &'static str;

    /// Returns the version that the node object shows, such as `process://0.1.0`.
    fn version(&self) -> String {
        format!("{}://{}", self.scheme(), env!("CARGO_PKG_VERSION"))
    }

    /// Returns the image if it is on this machine. Contacts no registry.
    async fn image(&self, reference: &str) -> Result<Option<Image>, RuntimeError>;

    /// Returns whether the image may be pulled: its registry is on a loopback address, or is configured.
    ///
    /// The pods of other images are simulated.
    fn may_pull(&self, reference: &str) -> bool;

    /// Pulls the image. `credentials` are tried in their order, then a request without credentials.
    async fn pull(&self, reference: &str, credentials: &[Credential]) -> Result<Image, PullError>;

    /// Creates the sandbox of a pod: network, host name, `/etc/hosts` and `/etc/resolv.conf`.
    async fn create_sandbox(&self, spec: SandboxSpec) -> Result<(), RuntimeError>;

    /// Stops all containers of a sandbox at once, and removes everything that belongs to the sandbox except its logs. A sandbox that
    /// does not exist is no error.
    async fn remove_sandbox(&self, sandbox: &SandboxId) -> Result<(), RuntimeError>;

    /// Starts a container in a sandbox. Its output goes to the log file of `spec`, in the format of the CRI. After
    /// [`SandboxEnded`](RuntimeError::SandboxEnded), the caller removes the sandbox and creates the sandbox again.
    async fn start(&self, sandbox: &SandboxId, spec: ContainerSpec) -> Result<ContainerId, RuntimeError>;

    /// Waits until the container has ended. Returns at once if the container has ended before.
    async fn wait(&self, container: &ContainerId) -> Result<Exit, RuntimeError>;

    /// Sends a signal to the first process of a container, by number: 15 is `SIGTERM`. A signal of 9 ends all processes of the
    /// container. A container that has ended is no error.
    async fn signal(&self, container: &ContainerId, signal: i32) -> Result<(), RuntimeError>;

    /// Returns the signal that asks the container to stop: that of its image, else 15 (`SIGTERM`).
    fn stop_signal(&self, container: &ContainerId) -> i32;

    /// Forgets a container that has ended, and removes its files except its log.
    async fn remove(&self, container: &ContainerId) -> Result<(), RuntimeError>;

    /// Runs a command in a running container.
    async fn exec(&self, container: &ContainerId, command: Command) -> Result<Session, RuntimeError>;

    /// Runs a command in a running container to its end, without a terminal and without an input. Returns `None` if the command took longer
    /// than `limit`. The runtimes of this crate kill such a command; the default implementation leaves the command running.
    async fn exec_sync(
        &self,
        container: &ContainerId,
        words: Vec<String>,
        limit: Duration,
    ) -> Result<Option<CommandOutput>, RuntimeError> {
        let mut session = self.exec(container, Command { words, terminal: None, stdin: false }).await?;
        timeout(limit, session.collect()).await.ok().transpose()
    }

    /// Attaches to the streams of the first process of a running container. Several clients may attach.
    async fn attach(&self, container: &ContainerId) -> Result<Session, RuntimeError>;

    /// Connects to a port in the sandbox, as a connection from inside the pod to its own loopback address, or to the pod's address if
    /// the program listens on the pod's address only.
    async fn connect(&self, sandbox: &SandboxId, port: u16) -> Result<TcpStream, RuntimeError>;

    /// Connects to a port at the address of the sandbox, as a connection from another pod: a program that listens on the loopback address
    /// only refuses the connection. A runtime without addresses of sandboxes connects as [`connect`](Self::connect) does.
    async fn connect_from_outside(&self, sandbox: &SandboxId, port: u16) -> Result<TcpStream, RuntimeError> {
        self.connect(sandbox, port).await
    }

    /// Removes all sandboxes, and all files of the runtime. Called once, before the process ends: a runtime that is only dropped may
    /// leave sandboxes or files to the next runtime. The runtime may refuse all later calls.
    async fn shut_down(&self) {}

    /// Makes a UDP socket that is connected to a port in the sandbox. Only datagrams of that port are received.
    async fn connect_udp(&self, sandbox: &SandboxId, port: u16) -> Result<UdpSocket, RuntimeError>;

    /// Returns the number of the network that the sandboxes share. After a new number, the sockets of [`listen`](Self::listen) and
    /// [`bind`](Self::bind) are not reached any more, and the caller makes the sockets again.
    fn network(&self) -> u64 {
        0
    }

    /// Returns whether programs reach the sockets of [`listen`](Self::listen) and [`bind`](Self::bind) at the addresses asked for. Otherwise
    /// programs learn other addresses when the programs start, so that a socket must be there before the program.
    fn keeps_addresses(&self) -> bool {
        true
    }

    /// Listens on an address of the node's network: programs of all sandboxes that connect to `address` are accepted here. Addresses of
    /// services are reached in this way. The address belongs to one of the [ranges](SandboxSpec::ranges) of an existing sandbox.
    async fn listen(&self, address: SocketAddr) -> Result<TcpListener, RuntimeError>;

    /// Works like [`listen`](Self::listen), for UDP: receives the datagrams that programs send to `address`.
    async fn bind(&self, address: SocketAddr) -> Result<UdpSocket, RuntimeError>;
}
