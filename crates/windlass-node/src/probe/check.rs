//! The checks of probes, through a runtime.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::{CheckResult, grpc, http};
use crate::{Command, ContainerId, Runtime, RuntimeError, SandboxId};

/// The most output of a command that is kept, in bytes.
const MOST_OUTPUT: u64 = 10 << 10;

/// The check of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A request whose status must be from 200 to 399.
    Http(HttpProbe),
    /// A port that must accept connections.
    Tcp {
        /// The port.
        port: u16,
    },
    /// A command whose exit code must be 0.
    Exec {
        /// The command and its arguments.
        words: Vec<String>,
    },
    /// A `grpc.health.v1.Health/Check` that must answer `SERVING`.
    Grpc {
        /// The port.
        port: u16,
        /// The name of the service. Default: empty.
        service: String,
    },
}

/// The request of an HTTP check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpProbe {
    /// The port.
    pub port: u16,
    /// The path, with a query.
    pub path: String,
    /// True if the request uses TLS. The certificate is not verified, as with the kubelet.
    pub tls: bool,
    /// The address in messages and in the header `Host`: that of the pod, or `httpGet.host`.
    pub host: String,
    /// Further headers. `Host` replaces the default.
    pub headers: Vec<(String, String)>,
}

/// Makes a check of a container. Takes at most `limit`.
pub async fn run(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    container: &ContainerId,
    check: &Check,
    limit: Duration,
) -> CheckResult {
    let checked = async {
        match check {
            Check::Http(probe) => http::check(runtime, sandbox, probe).await,
            Check::Tcp { port } => match runtime.connect_from_outside(sandbox, *port).await {
                Ok(_) => CheckResult::Success,
                Err(error) => CheckResult::Failure(dial_error(&error, "", *port)),
            },
            Check::Exec { words } => exec(runtime, container, words).await,
            Check::Grpc { port, service } => grpc::check(runtime, sandbox, *port, service).await,
        }
    };
    timeout(limit, checked).await.unwrap_or_else(|_| CheckResult::Failure(timed_out(check, limit)))
}

fn timed_out(check: &Check, limit: Duration) -> String {
    match check {
        Check::Http(probe) => format!(
            "Get \"{}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            http::url(probe)
        ),
        Check::Tcp { port } => format!("dial tcp :{port}: i/o timeout"),
        Check::Exec { words } => {
            format!("command timed out: {:?} timed out after {}s", words.join(" "), limit.as_secs())
        }
        Check::Grpc { port, .. } => {
            format!(
                "timeout: failed to connect service \":{port}\" within {}s: context deadline exceeded",
                limit.as_secs()
            )
        }
    }
}

/// Returns a failed connection in the words of Go.
pub(super) fn dial_error(error: &RuntimeError, host: &str, port: u16) -> String {
    let reason = match error {
        RuntimeError::Io { error, .. } if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            "connect: connection refused".to_owned()
        }
        error => error.to_string(),
    };
    format!("dial tcp {host}:{port}: {reason}")
}

async fn exec(runtime: &dyn Runtime, container: &ContainerId, words: &[String]) -> CheckResult {
    let command = Command { words: words.to_vec(), terminal: None, stdin: false };
    let mut session = match runtime.exec(container, command).await {
        Ok(session) => session,
        Err(error) => return CheckResult::Failure(error.to_string()),
    };
    let (stdout, stderr) = (session.stdout.take(), session.stderr.take());
    let read = async |stream: Option<std::pin::Pin<Box<dyn tokio::io::AsyncRead + Send>>>| {
        let mut text = Vec::new();
        if let Some(mut stream) = stream {
            let _ = (&mut stream).take(MOST_OUTPUT).read_to_end(&mut text).await;
            // The rest is read too: a full pipe would stop the command.
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
        text
    };
    let (mut text, error) = tokio::join!(read(stdout), read(stderr));
    text.extend(error);
    match session.exit.await {
        Ok(exit) if exit.code == 0 => CheckResult::Success,
        Ok(_) => CheckResult::Failure(String::from_utf8_lossy(&text).into_owned()),
        Err(error) => CheckResult::Failure(error.to_string()),
    }
}
