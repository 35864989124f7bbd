//! Performs probes and hooks of containers.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, HTTPGetAction, LifecycleHandler, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;
use windlass_node::{Command, ContainerId, Runtime, SandboxId};

/// The most bytes of a command's output that are kept.
const MAX_OUTPUT: u64 = 10 * 1024;

/// A container whose probes and hooks are performed.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub runtime: &'a dyn Runtime,
    pub sandbox: &'a SandboxId,
    pub id: &'a ContainerId,
    pub container: &'a Container,
    /// The address of the pod, for messages.
    pub address: &'a str,
}

impl Target<'_> {
    /// Performs a probe once.
    ///
    /// # Errors
    /// Why the probe has failed, in the kubelet's words.
    pub(crate) async fn probe(self, probe: &Probe) -> Result<(), String> {
        let seconds = probe.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let limit = Duration::from_secs(seconds.unwrap_or(1).max(1));
        let check = async {
            if let Some(exec) = &probe.exec {
                let words = exec.command.clone().unwrap_or_default();
                return self.exec(words).await;
            }
            if let Some(get) = &probe.http_get {
                return self.get(get).await;
            }
            if let Some(socket) = &probe.tcp_socket {
                let port = self.port(&socket.port)?;
                return self.dial(port).await.map(drop);
            }
            if let Some(grpc) = &probe.grpc {
                return Err(format!("this node performs no gRPC probes (port {})", grpc.port));
            }
            Ok(())
        };
        timeout(limit, check).await.unwrap_or_else(|_| Err(self.late(probe, limit)))
    }

    fn late(self, probe: &Probe, limit: Duration) -> String {
        match &probe.http_get {
            Some(get) => match self.url(get) {
                Ok(url) => format!(
                    "Get {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
                ),
                Err(error) => error,
            },
            None if probe.exec.is_some() => {
                let words = probe.exec.as_ref().and_then(|exec| exec.command.clone()).unwrap_or_default();
                format!("command timed out: {:?} timed out after {}s", words.join(" "), limit.as_secs())
            }
            None => "dial tcp: i/o timeout".to_owned(),
        }
    }

    /// Performs a `postStart` or `preStop` hook.
    ///
    /// # Errors
    /// Why the hook has failed.
    pub(crate) async fn hook(self, hook: &LifecycleHandler) -> Result<(), String> {
        if let Some(exec) = &hook.exec {
            return self.exec(exec.command.clone().unwrap_or_default()).await;
        }
        if let Some(get) = &hook.http_get {
            return self.get(get).await;
        }
        if let Some(sleep) = &hook.sleep {
            let seconds = u64::try_from(sleep.seconds).unwrap_or_default();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
        Ok(())
    }

    async fn exec(self, words: Vec<String>) -> Result<(), String> {
        let command = Command { words, terminal: None, stdin: false };
        let session = self.runtime.exec(self.id, command).await.map_err(|error| error.to_string())?;
        let read = |stream| read_some(stream);
        let (out, errors, exit) = tokio::join!(read(session.stdout), read(session.stderr), session.exit);
        match exit.map_err(|error| error.to_string())?.code {
            0 => Ok(()),
            _ => Err(format!("{out}{errors}")),
        }
    }

    async fn dial(self, port: u16) -> Result<tokio::net::TcpStream, String> {
        let refused = |_| format!("dial tcp {}:{port}: connect: connection refused", self.address);
        self.runtime.connect(self.sandbox, port).await.map_err(refused)
    }

    async fn get(self, get: &HTTPGetAction) -> Result<(), String> {
        let url = self.url(get)?;
        if get.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("HTTPS")) {
            return Err(format!("Get {url:?}: this node performs no HTTPS probes"));
        }
        let port = self.port(&get.port)?;
        let failed = |error: String| format!("Get {url:?}: {error}");
        let mut stream = self.dial(port).await.map_err(failed)?;
        let host = format!("{}:{port}", get.host.as_deref().unwrap_or(self.address));
        stream.write_all(request(get, &host).as_bytes()).await.map_err(|error| failed(error.to_string()))?;
        let mut line = String::new();
        let mut head = BufReader::new(stream.take(8 * 1024));
        head.read_line(&mut line).await.map_err(|error| failed(error.to_string()))?;
        let code = line.split(' ').nth(1).and_then(|code| code.trim().parse::<u16>().ok());
        match code {
            Some(200..400) => Ok(()),
            Some(code) => Err(format!("HTTP probe failed with statuscode: {code}")),
            None => Err(failed(if line.is_empty() {
                "EOF".into()
            } else {
                format!("malformed HTTP response {line:?}")
            })),
        }
    }

    fn url(self, get: &HTTPGetAction) -> Result<String, String> {
        let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
        let host = get.host.as_deref().unwrap_or(self.address);
        Ok(format!("{scheme}://{host}:{}{}", self.port(&get.port)?, path(get)))
    }

    fn port(self, port: &IntOrString) -> Result<u16, String> {
        let wrong = || format!("invalid port number: {port:?}");
        match port {
            IntOrString::Int(number) => u16::try_from(*number).map_err(|_| wrong()),
            IntOrString::String(name) => {
                let mut ports = self.container.ports.iter().flatten();
                let found = ports.find(|port| port.name.as_deref() == Some(name));
                let number = found.and_then(|port| u16::try_from(port.container_port).ok());
                number.or_else(|| name.parse().ok()).ok_or_else(wrong)
            }
        }
    }
}

fn path(get: &HTTPGetAction) -> String {
    let path = get.path.as_deref().unwrap_or("/");
    // A control character would end the request line.
    let path: String =
        path.chars().filter(|character| !character.is_control() && *character != ' ').collect();
    if path.starts_with('/') { path } else { format!("/{path}") }
}

fn request(get: &HTTPGetAction, host: &str) -> String {
    let mut headers = vec![
        ("User-Agent".to_owned(), "kube-probe/1.36".to_owned()),
        ("Accept".to_owned(), "*/*".to_owned()),
        ("Connection".to_owned(), "close".to_owned()),
    ];
    let mut host = host.to_owned();
    for header in get.http_headers.iter().flatten() {
        if header.name.eq_ignore_ascii_case("Host") {
            host.clone_from(&header.value);
        } else {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&header.name));
            headers.push((header.name.clone(), header.value.clone()));
        }
    }
    let clean = |text: &str| text.replace(['\r', '\n'], "");
    let lines = headers.iter().map(|(name, value)| format!("{}: {}\r\n", clean(name), clean(value)));
    format!("GET {} HTTP/1.1\r\nHost: {}\r\n{}\r\n", path(get), clean(&host), lines.collect::<String>())
}

/// Reads a stream to its end, and keeps the beginning.
async fn read_some(stream: Option<std::pin::Pin<Box<dyn AsyncRead + Send>>>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let mut kept = Vec::new();
    let _ = (&mut stream).take(MAX_OUTPUT).read_to_end(&mut kept).await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}
