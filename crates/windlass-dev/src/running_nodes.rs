//! A node that runs the programs of some pods and simulates all other pods, as the API server reaches the node.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use tokio::net::TcpStream;
use tokio::time::sleep;
use windlass_apiserver::{
    Attach, Command, Connection, Container, LogRequest, NodeError, Nodes, Pod, Session, Target,
};
use windlass_controllers::RunningPods;
use windlass_node::log::{self, LogOptions};
use windlass_node::{RuntimeError, TerminalSize};

use crate::nodes::{SimulatedNodes, node_error, of_runtime};

/// How often a follower of a log looks whether the container has ended.
const LOOK: Duration = Duration::from_millis(200);

/// The size of a terminal until the client sends the size.
const TERMINAL: TerminalSize = TerminalSize { width: 80, height: 24 };

/// Reaches into the pods whose programs run. All other pods are simulated.
pub(crate) struct RunningNodes {
    pods: RunningPods,
    simulated: SimulatedNodes,
}

impl RunningNodes {
    pub(crate) fn new(pods: RunningPods) -> Self {
        Self { pods, simulated: SimulatedNodes }
    }
}

#[async_trait]
impl Nodes for RunningNodes {
    async fn exec(&self, container: &Container, command: Command) -> Result<Session, NodeError> {
        let Command { words, streams } = command.clone();
        let of_pod = windlass_node::Command {
            words,
            terminal: streams.terminal.then_some(TERMINAL),
            stdin: streams.stdin,
        };
        match self.pods.exec(&container.pod.uid, &container.name, of_pod).await {
            Some(session) => started(container, session),
            None => self.simulated.exec(container, command).await,
        }
    }

    async fn attach(&self, container: &Container, streams: Attach) -> Result<Session, NodeError> {
        let Some(session) = self.pods.attach(&container.pod.uid, &container.name).await else {
            return self.simulated.attach(container, streams).await;
        };
        let mut session = started(container, session)?;
        // The server ends an input that the client has not asked for.
        session.stdin.take_if(|_| !streams.stdin);
        Ok(session)
    }

    async fn port_forward(&self, pod: &Pod, port: u16) -> Result<Connection, NodeError> {
        match self.pods.connect(&pod.uid, port).await {
            Some(connected) => connected.map(boxed).map_err(|error| node_error(&error)),
            None => self.simulated.port_forward(pod, port).await,
        }
    }

    async fn logs(
        &self,
        container: &Container,
        request: &LogRequest,
    ) -> Option<Result<BoxStream<'static, Bytes>, NodeError>> {
        let files = match self.pods.logs(&container.pod.uid, &container.name)? {
            Ok(files) => files,
            Err(error) => return Some(Err(node_error(&error))),
        };
        let file = if request.previous { files.previous } else { Some(files.current) };
        let Some(file) = file else { return Some(Err(no_previous(container))) };
        let options = LogOptions {
            follow: request.follow && !request.previous,
            tail: request.tail,
            since: request.since,
            timestamps: request.timestamps,
            limit_bytes: request.limit.map(|limit| limit as u64),
            stream: None,
        };
        let ended = ended(self.pods.clone(), container.clone(), file.clone());
        let read = log::read(file, options, ended).filter_map(async |part| match part {
            Ok(part) => Some(part),
            Err(error) => {
                tracing::warn!(%error, "a log cannot be read to its end");
                None
            }
        });
        Some(Ok(read.boxed()))
    }

    async fn connect(&self, target: &Target) -> Option<io::Result<Connection>> {
        let of_pod = match &target.pod {
            Some(pod) => self.pods.connect_from_outside(&pod.uid, target.port).await,
            None => None,
        };
        let connected = match of_pod {
            Some(connected) => Some(connected),
            None => self.pods.network().connect(target.address, target.port).await,
        };
        match connected {
            Some(connected) => Some(connected.map(boxed).map_err(as_io)),
            None => self.simulated.connect(target).await,
        }
    }
}

fn started(
    container: &Container,
    session: Result<windlass_node::Session, RuntimeError>,
) -> Result<Session, NodeError> {
    match session {
        Ok(session) => Ok(of_runtime(session)),
        Err(RuntimeError::NotFound(_)) => Err(NodeError::container_not_found(&container.name)),
        Err(error) => Err(node_error(&error)),
    }
}

fn boxed(stream: TcpStream) -> Connection {
    Box::new(stream)
}

/// Keeps the kind of the system's error: the server chooses the message of the response by the kind.
fn as_io(error: RuntimeError) -> io::Error {
    match error {
        RuntimeError::Io { error, .. } => error,
        error => io::Error::other(error.to_string()),
    }
}

fn no_previous(container: &Container) -> NodeError {
    NodeError::Refused(format!(
        "previous terminated container {:?} in pod {:?} not found",
        container.name, container.pod.name
    ))
}

/// Ends when the container whose log is `file` has ended.
async fn ended(pods: RunningPods, container: Container, file: PathBuf) {
    let runs = || match pods.logs(&container.pod.uid, &container.name) {
        Some(Ok(files)) => files.is_running && files.current == file,
        _ => false,
    };
    while runs() {
        sleep(LOOK).await;
    }
}
