//! The end of a command, for the error stream.

use serde_json::json;

use crate::nodes::NodeError;

/// How a command or an attached container has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The exit code of the command.
    Exited(i32),
    /// The kubelet has refused or has failed.
    Failed(NodeError),
    /// The server stops.
    Stopped,
    /// No transfer has happened for a long time.
    Idle,
}

/// Writes the end for the error stream: a `Status`, or for old clients a text. Returns `None` for an end
/// without a message.
pub(super) fn write(end: &End, command: &[String], is_attach: bool, has_status: bool) -> Option<String> {
    let status = match end {
        End::Exited(0) => json!({"metadata": {}, "status": "Success"}),
        End::Exited(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!(
                "command terminated with non-zero exit code: error executing command [{}], exit code {code}",
                command.join(" ")
            ),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        // The real server translates version 5 for the kubelet: a refusal is a refusal of the server's
        // connection to the kubelet.
        End::Failed(NodeError::Refused(why)) => internal(&format!("unable to upgrade connection: {why}")),
        End::Failed(NodeError::Failed(why)) => {
            let doing = if is_attach { "attaching to container" } else { "executing command in container" };
            internal(&format!("error {doing}: {why}"))
        }
        End::Stopped => unavailable("the server is shutting down"),
        End::Idle => unavailable("the connection was idle for too long"),
    };
    if has_status {
        return Some(status.to_string());
    }
    status["message"].as_str().map(str::to_owned)
}

fn internal(why: &str) -> serde_json::Value {
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("Internal error occurred: {why}"),
        "reason": "InternalError",
        "details": {"causes": [{"message": why}]},
        "code": 500,
    })
}

fn unavailable(why: &str) -> serde_json::Value {
    json!({"metadata": {}, "status": "Failure", "message": why, "reason": "ServiceUnavailable", "code": 503})
}
