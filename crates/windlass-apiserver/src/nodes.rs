//! The nodes behind the server: the streams and the network of pods.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// The kubelets of a cluster. A server forwards `exec`, `attach`, `port-forward`, `log` and `proxy` to the
/// kubelets.
///
/// A server without nodes answers `exec`, `attach` and `port-forward` with 500, shows the text of annotations as logs, and dials
/// addresses directly. [`ServerBuilder::nodes`](crate::ServerBuilder::nodes) sets the nodes.
///
/// The server has authorised each request, has run admission, and has found that the pod exists, is on a node, and has the
/// container.
#[async_trait]
pub trait Nodes: Send + Sync + 'static {
    /// Runs a command in a running container.
    ///
    /// # Errors
    /// [`NodeError::Refused`] if the container does not run. [`NodeError::Failed`] if the command cannot be started.
    async fn exec(&self, container: &Container, command: Command) -> Result<Session, NodeError>;

    /// Attaches to the streams of a running container. The session's `exit` ends with the container.
    ///
    /// # Errors
    /// As for [`exec`](Self::exec).
    async fn attach(&self, container: &Container, streams: Attach) -> Result<Session, NodeError>;

    /// Connects to a port of a pod, as a connection from inside the pod.
    ///
    /// # Errors
    /// No program listens. The message is a part of the client's error.
    async fn port_forward(&self, pod: &Pod, port: u16) -> Result<Connection, NodeError>;

    /// Reads the log of a container. `None` shows the text of the pod's annotations, as for a simulated pod.
    ///
    /// The lines have times, and `request.limit` has been applied.
    async fn logs(
        &self,
        container: &Container,
        request: &LogRequest,
    ) -> Option<Result<BoxStream<'static, Bytes>, NodeError>>;

    /// Connects to an address in the network of the pods, for `proxy` and for webhooks. `None` dials the address directly.
    async fn connect(&self, target: &Target) -> Option<io::Result<Connection>>;
}

/// A pod that the server has found.
#[derive(Clone, Debug)]
pub struct Pod {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// The whole object, in the version `v1`.
    pub object: Arc<Value>,
}

impl Pod {
    pub(crate) fn new(object: Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (namespace, name, uid) = (text("namespace"), text("name"), text("uid"));
        Self { namespace, name, uid, object: Arc::new(object) }
    }

    /// Returns the annotation with this key.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.object["metadata"]["annotations"][key].as_str()
    }
}

/// A container of a pod.
#[derive(Clone, Debug)]
pub struct Container {
    /// The pod.
    pub pod: Pod,
    /// The name of the container in the pod.
    pub name: String,
}

/// A command to run in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and the arguments.
    pub words: Vec<String>,
    /// The streams that the client asks for.
    pub streams: Attach,
}

/// The streams that a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attach {
    /// True if the client sends a standard input.
    pub stdin: bool,
    /// True if the client wants the standard output.
    pub stdout: bool,
    /// True if the client wants the standard error. Always false with a terminal.
    pub stderr: bool,
    /// True for the streams of a terminal.
    pub terminal: bool,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// Bytes from a program.
pub type Reader = Pin<Box<dyn AsyncRead + Send>>;
/// Bytes for a program.
pub type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// The streams of a command or of a container, and the end. A missing stream sends or takes no bytes.
///
/// The server drops the session when the client has left.
pub struct Session {
    /// The standard input. The server shuts it down and drops it when the client's input ends.
    pub stdin: Option<Writer>,
    /// The standard output, or all output of a terminal.
    pub stdout: Option<Reader>,
    /// The standard error.
    pub stderr: Option<Reader>,
    /// Changes the size of the terminal.
    pub resize: Option<mpsc::Sender<TerminalSize>>,
    /// The exit code. Ends when the command or the container has ended. The server ignores the code of a container.
    pub exit: BoxFuture<'static, Result<i32, NodeError>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// A stream of bytes in both directions. Shutting it down ends the direction to the pod only.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection to a port of a pod.
pub type Connection = Box<dyn Duplex>;

/// The part of a log that a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// True if lines that are written later follow, until the container ends.
    pub follow: bool,
    /// True if the log is that of the container's last run.
    pub previous: bool,
    /// True if each line begins with a time and a space.
    pub timestamps: bool,
    /// The number of lines at the end of the log. `None` for all lines.
    pub tail: Option<usize>,
    /// The time of the first line.
    pub since: Option<SystemTime>,
    /// The most bytes that are sent.
    pub limit: Option<usize>,
}

/// An address in the network of the pods.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address of a pod, or any other address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// The pod that has the address, if the server knows the pod.
    pub pod: Option<Pod>,
}

/// The reason why a node refused an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// The kubelet refuses the request: the container does not run, for example. The real kubelet's text: `container not found
    /// ("web")`.
    #[error("{0}")]
    Refused(String),
    /// The kubelet has tried and failed, for example because there is no such program.
    #[error("{0}")]
    Failed(String),
}

impl NodeError {
    /// Returns the refusal of a container that does not run, in the words of the real kubelet.
    pub fn container_not_found(name: &str) -> Self {
        Self::Refused(format!("container not found ({})", windlass_schema::go_quote(name)))
    }
}
