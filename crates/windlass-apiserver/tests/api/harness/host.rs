//! A node whose containers are processes of this machine: for the streams of pods.

use std::fs::File;
use std::io;
use std::process::Stdio;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use rustix::pty;
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::process::{Child, Command as Process};
use tokio::sync::mpsc;
use windlass_apiserver::{
    Attach, Command, Connection, Container, LogRequest, NodeError, Nodes, Pod, Reader, Server, Session,
    Target, TerminalSize, Writer,
};

use super::Api;

/// A node with containers that are processes of this machine, and pods that have the ports of this machine.
///
/// The container `gone` does not run. Attaching runs `cat`.
pub(crate) struct Host;

impl Host {
    /// Starts a server with this node, and the pod `web` on it in a new namespace. Returns the path of the pods.
    pub(crate) async fn serve() -> (Api, String) {
        let server = Server::builder().nodes(Host).build().unwrap();
        let api = Api::listening(&server, windlass_apiserver::Listen::default()).await;
        let pods = Self::pod(&api).await;
        (api, pods)
    }

    /// Creates the node, and the pod `web` in a new namespace.
    pub(crate) async fn pod(api: &Api) -> String {
        let nodes = "/api/v1/nodes";
        api.post(nodes, json!({"metadata": {"name": "host"}})).await.is(201);
        let addresses = json!([{"type": "InternalIP", "address": "127.0.0.1"}]);
        let status = json!({"metadata": {"name": "host"}, "status": {"addresses": addresses}});
        api.put("/api/v1/nodes/host/status", status).await.is(200);
        let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
        let containers = json!([{"name": "c", "image": "i"}, {"name": "gone", "image": "i"}]);
        let pod =
            json!({"metadata": {"name": "web"}, "spec": {"nodeName": "host", "containers": containers}});
        let mut pod = api.post(&pods, pod).await.is(201).json();
        pod["status"] = json!({"phase": "Running", "podIP": "10.1.0.7", "podIPs": [{"ip": "10.1.0.7"}]});
        api.put(&format!("{pods}/web/status"), pod).await.is(200);
        pods
    }

    fn start(words: &[String], streams: Attach) -> Result<Session, NodeError> {
        if streams.terminal {
            return on_terminal(words).map_err(|error| NodeError::Failed(error.to_string()));
        }
        let piped = |is_wanted| if is_wanted { Stdio::piped() } else { Stdio::null() };
        let mut process = Process::new(words.first().map(String::as_str).unwrap_or_default());
        process.args(words.iter().skip(1)).kill_on_drop(true);
        process.stdin(piped(streams.stdin)).stdout(piped(streams.stdout)).stderr(piped(streams.stderr));
        let mut child = process.spawn().map_err(|_| {
            NodeError::Failed(format!("exec: {:?}: executable file not found in $PATH", words.first()))
        })?;
        Ok(Session {
            stdin: child.stdin.take().map(|stdin| Box::pin(stdin) as Writer),
            stdout: child.stdout.take().map(|stdout| Box::pin(stdout) as Reader),
            stderr: child.stderr.take().map(|stderr| Box::pin(stderr) as Reader),
            resize: None,
            exit: Box::pin(exit(child)),
        })
    }
}

async fn exit(mut child: Child) -> Result<i32, NodeError> {
    let status = child.wait().await.map_err(|error| NodeError::Failed(error.to_string()))?;
    Ok(status.code().unwrap_or(137))
}

/// Runs a command in a session with a terminal of its own.
fn on_terminal(words: &[String]) -> io::Result<Session> {
    let main = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY)?;
    pty::grantpt(&main)?;
    pty::unlockpt(&main)?;
    let name = pty::ptsname(&main, Vec::new())?;
    let side = File::options().read(true).write(true).open(name.to_string_lossy().as_ref())?;
    let mut process = Process::new("setsid");
    process.arg("-cw").args(words).kill_on_drop(true);
    process.stdin(side.try_clone()?).stdout(side.try_clone()?).stderr(side);
    let child = process.spawn()?;
    drop(process);
    let main = File::from(main);
    let (resize, mut sizes) = mpsc::channel::<TerminalSize>(1);
    let sized = main.try_clone()?;
    tokio::spawn(async move {
        while let Some(TerminalSize { width, height }) = sizes.recv().await {
            let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
            let _ = tcsetwinsize(&sized, size);
        }
    });
    Ok(Session {
        stdin: Some(Box::pin(tokio::fs::File::from_std(main.try_clone()?))),
        stdout: Some(Box::pin(tokio::fs::File::from_std(main))),
        stderr: None,
        resize: Some(resize),
        exit: Box::pin(exit(child)),
    })
}

#[async_trait]
impl Nodes for Host {
    async fn exec(&self, container: &Container, command: Command) -> Result<Session, NodeError> {
        if container.name == "gone" {
            return Err(NodeError::container_not_found(&container.name));
        }
        Self::start(&command.words, command.streams)
    }

    async fn attach(&self, _: &Container, streams: Attach) -> Result<Session, NodeError> {
        Self::start(&["cat".to_owned()], streams)
    }

    async fn port_forward(&self, _: &Pod, port: u16) -> Result<Connection, NodeError> {
        match TcpStream::connect(("127.0.0.1", port)).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(_) => {
                Err(NodeError::Failed(format!("dial tcp4 127.0.0.1:{port}: connect: connection refused")))
            }
        }
    }

    async fn logs(
        &self,
        container: &Container,
        request: &LogRequest,
    ) -> Option<Result<BoxStream<'static, Bytes>, NodeError>> {
        let line = format!("{} tail {:?} follow {}\n", container.name, request.tail, request.follow);
        (container.name == "c").then(|| Ok(stream::iter([Bytes::from(line)]).boxed()))
    }

    async fn connect(&self, target: &Target) -> Option<io::Result<Connection>> {
        let has_pod = target.pod.as_ref().is_some_and(|pod| pod.name == "web");
        if target.address.to_string() != "10.1.0.7" || !has_pod {
            return None;
        }
        let connected = TcpStream::connect(("127.0.0.1", target.port)).await;
        Some(connected.map(|stream| Box::new(stream) as Connection))
    }
}
