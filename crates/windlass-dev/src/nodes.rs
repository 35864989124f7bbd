//! The nodes of a control plane, for the API server.

use std::collections::BTreeMap;
use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use tokio::net::TcpStream;
use windlass_apiserver::{
    Attach, Command, Connection, Container, LogRequest, NodeError, Nodes, Pod, Session, Target,
};
use windlass_controllers::streams::{port_address, run_script};
use windlass_node::{Exit, RuntimeError};

/// The simulated node: annotations of a pod script the pod's streams.
#[derive(Debug, Default)]
pub(crate) struct SimulatedNodes;

#[async_trait]
impl Nodes for SimulatedNodes {
    async fn exec(&self, container: &Container, command: Command) -> Result<Session, NodeError> {
        simulate(container, command.words, command.streams)
    }

    async fn attach(&self, container: &Container, streams: Attach) -> Result<Session, NodeError> {
        simulate(container, Vec::new(), streams)
    }

    async fn port_forward(&self, pod: &Pod, port: u16) -> Result<Connection, NodeError> {
        let annotations = annotations(pod);
        let address = port_address(&annotations, port).map_err(|error| node_error(&error))?;
        match TcpStream::connect(address).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(NodeError::Failed(format!("dial tcp {address}: {error}"))),
        }
    }

    async fn logs(
        &self,
        _: &Container,
        _: &LogRequest,
    ) -> Option<Result<BoxStream<'static, Bytes>, NodeError>> {
        None
    }

    async fn connect(&self, target: &Target) -> Option<io::Result<Connection>> {
        let pod = target.pod.as_ref()?;
        let annotations = annotations(pod);
        let address = match port_address(&annotations, target.port) {
            Ok(address) => address,
            // No program listens at the address of a simulated pod.
            Err(error) if pod.object["status"]["podIP"] == target.address.to_string() => {
                return Some(Err(io::Error::other(error.to_string())));
            }
            Err(_) => return None,
        };
        let connected = TcpStream::connect(address).await;
        Some(connected.map(|stream| Box::new(stream) as Connection))
    }
}

/// Runs the script of a simulated container.
fn simulate(container: &Container, words: Vec<String>, streams: Attach) -> Result<Session, NodeError> {
    if !is_running(container) {
        return Err(NodeError::container_not_found(&container.name));
    }
    // The size comes later: a client sends the size after the start.
    let terminal = streams.terminal.then_some(windlass_node::TerminalSize { width: 80, height: 24 });
    let command = windlass_node::Command { words, terminal, stdin: streams.stdin };
    let session = run_script(&annotations(&container.pod), &container.name, &command);
    session.map(of_runtime).map_err(|error| node_error(&error))
}

/// Returns whether the pod's status reports a running container.
fn is_running(container: &Container) -> bool {
    let status = &container.pod.object["status"];
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"].iter().any(|field| {
        let mut statuses = status[*field].as_array().into_iter().flatten();
        statuses.any(|status| status["name"] == *container.name && status["state"]["running"].is_object())
    })
}

fn annotations(pod: &Pod) -> BTreeMap<String, String> {
    let annotations = pod.object["metadata"]["annotations"].as_object().into_iter().flatten();
    annotations.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Converts the session of a runtime into a session of the API server.
pub(crate) fn of_runtime(session: windlass_node::Session) -> Session {
    let windlass_node::Session { stdin, stdout, stderr, resize, exit } = session;
    Session { stdin, stdout, stderr, resize: resize.map(sizes), exit: code(exit) }
}

fn code(
    exit: impl Future<Output = Result<Exit, RuntimeError>> + Send + 'static,
) -> BoxFuture<'static, Result<i32, NodeError>> {
    exit.map(|exit| exit.map(|exit| exit.code).map_err(|error| node_error(&error))).boxed()
}

/// Passes sizes of a terminal on to a runtime.
fn sizes(
    runtime: tokio::sync::mpsc::Sender<windlass_node::TerminalSize>,
) -> tokio::sync::mpsc::Sender<windlass_apiserver::TerminalSize> {
    let (sender, mut sizes) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(windlass_apiserver::TerminalSize { width, height }) = sizes.recv().await {
            if runtime.send(windlass_node::TerminalSize { width, height }).await.is_err() {
                return;
            }
        }
    });
    sender
}

/// Converts the error of a runtime into an error of the API server.
pub(crate) fn node_error(error: &RuntimeError) -> NodeError {
    match error {
        RuntimeError::NotFound(_) | RuntimeError::Unsupported(_) => NodeError::Refused(error.to_string()),
        _ => NodeError::Failed(error.to_string()),
    }
}
