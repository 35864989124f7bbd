//! The checks of probes, through a runtime.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{CheckResult, grpc, http};
use crate::{ContainerId, Runtime, RuntimeError, SandboxId};

/// The check of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A request whose status must be from 200 to 399.
    Http(HttpProbe),
    /// A port that must accept connections.
    Tcp {
        /// The host that this machine dials. `None`: the pod.
        host: Option<String>,
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
    /// True if this machine dials `host`. Otherwise the request goes to the pod.
    pub is_outside: bool,
    /// Further headers. `Host` replaces the default.
    pub headers: Vec<(String, String)>,
}

/// Makes a check of a container. Takes at most `limit`. A command that takes longer is killed.
pub async fn run(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    container: &ContainerId,
    check: &Check,
    limit: Duration,
) -> CheckResult {
    let result = match check {
        Check::Http(probe) => timeout(limit, http::check(runtime, sandbox, probe)).await.ok(),
        Check::Tcp { host, port } => timeout(limit, tcp(runtime, sandbox, host.as_deref(), *port)).await.ok(),
        Check::Exec { words } => exec(runtime, container, words, limit).await,
        Check::Grpc { port, service } => {
            timeout(limit, grpc::check(runtime, sandbox, *port, service)).await.ok()
        }
    };
    result.unwrap_or_else(|| CheckResult::Failure(timed_out(check, limit)))
}

/// Performs a lifecycle hook, for at most `limit`. As in the kubelet, a request succeeds with each status.
///
/// # Errors
/// Why the hook has failed.
pub async fn run_hook(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    container: &ContainerId,
    hook: &Check,
    limit: Duration,
) -> Result<(), String> {
    if let Check::Http(request) = hook {
        let answered = timeout(limit, http::answer(runtime, sandbox, request)).await;
        return answered.unwrap_or_else(|_| Err(timed_out(hook, limit))).map(drop);
    }
    match run(runtime, sandbox, container, hook, limit).await {
        CheckResult::Success | CheckResult::Warning(_) => Ok(()),
        CheckResult::Failure(why) => Err(why),
    }
}

async fn tcp(runtime: &dyn Runtime, sandbox: &SandboxId, host: Option<&str>, port: u16) -> CheckResult {
    match dial(runtime, sandbox, host, port).await {
        Ok(_) => CheckResult::Success,
        Err(error) => CheckResult::Failure(dial_error(&error, host.unwrap_or_default(), port)),
    }
}

/// Connects to a port of a host that this machine reaches, or else of the pod.
pub(super) async fn dial(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    host: Option<&str>,
    port: u16,
) -> Result<TcpStream, RuntimeError> {
    let Some(host) = host else { return runtime.connect_from_outside(sandbox, port).await };
    let connected = TcpStream::connect((host, port)).await;
    connected.map_err(|error| RuntimeError::Io { doing: format!("dial tcp {host}:{port}"), error })
}

fn timed_out(check: &Check, limit: Duration) -> String {
    match check {
        Check::Http(probe) => format!(
            "Get \"{}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            http::url(probe)
        ),
        Check::Tcp { host, port } => {
            format!("dial tcp {}:{port}: i/o timeout", host.as_deref().unwrap_or_default())
        }
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

/// Runs a command. Returns `None` if the command took longer than `limit`.
async fn exec(
    runtime: &dyn Runtime,
    container: &ContainerId,
    words: &[String],
    limit: Duration,
) -> Option<CheckResult> {
    match runtime.exec_sync(container, words.to_vec(), limit).await {
        Ok(None) => None,
        Ok(Some(output)) if output.code == 0 => Some(CheckResult::Success),
        Ok(Some(output)) => Some(CheckResult::Failure(String::from_utf8_lossy(&output.text).into_owned())),
        Err(error) => Some(CheckResult::Failure(error.to_string())),
    }
}
