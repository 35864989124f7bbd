//! The checks of probes, through a runtime.

use std::time::Duration;

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
        Check::Tcp { port } => timeout(limit, tcp(runtime, sandbox, *port)).await.ok(),
        Check::Exec { words } => exec(runtime, container, words, limit).await,
        Check::Grpc { port, service } => {
            timeout(limit, grpc::check(runtime, sandbox, *port, service)).await.ok()
        }
    };
    result.unwrap_or_else(|| CheckResult::Failure(timed_out(check, limit)))
}

async fn tcp(runtime: &dyn Runtime, sandbox: &SandboxId, port: u16) -> CheckResult {
    match runtime.connect_from_outside(sandbox, port).await {
        Ok(_) => CheckResult::Success,
        Err(error) => CheckResult::Failure(dial_error(&error, "", port)),
    }
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
