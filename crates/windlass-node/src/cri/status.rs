//! The end of a command: a status of Kubernetes, which the container runtime sends on a stream of its own.

use serde::Deserialize;

#[derive(Deserialize)]
struct Status {
    #[serde(rename = "status")]
    outcome: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Details,
}

#[derive(Default, Deserialize)]
struct Details {
    #[serde(default)]
    causes: Vec<Cause>,
}

#[derive(Deserialize)]
struct Cause {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

/// Returns whether all bytes of a status have arrived.
pub(super) fn is_complete(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Status>(bytes).is_ok()
}

/// Returns the exit code, or why the command did not run.
pub(super) fn end(status: &[u8]) -> Result<i32, String> {
    let Ok(status) = serde_json::from_slice::<Status>(status) else {
        return Err(String::from_utf8_lossy(status).into_owned());
    };
    if status.outcome == "Success" {
        return Ok(0);
    }
    let code = status.details.causes.iter().find(|cause| cause.reason == "ExitCode");
    code.and_then(|cause| cause.message.parse().ok()).ok_or(status.message)
}

/// Returns the exit code of a shell for a command that did not run: 127 for a program that does not exist, 126 for a file that is no program.
/// The text is that of runc and of crun.
pub(super) fn code_of_shell(failure: &str) -> Option<i32> {
    let has = |text: &str| failure.contains(text);
    if has("executable file not found") || has("no such file or directory") || has("not found in $PATH") {
        return Some(127);
    }
    (has("permission denied") || has("exec format error")).then_some(126)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_exit_code_or_the_reason() {
        assert_eq!(end(br#"{"status": "Success"}"#), Ok(0));
        let code = br#"{"status": "Failure", "message": "command terminated", "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}"#;
        assert_eq!(end(code), Ok(3));
        assert_eq!(end(br#"{"status": "Failure", "message": "no"}"#), Err("no".into()));
        assert_eq!(end(b"text"), Err("text".into()));
        assert!(is_complete(br#"{"status": "Success"}"#) && !is_complete(br#"{"status": "Suc"#));
    }

    #[test]
    fn a_program_that_does_not_exist_has_the_code_of_a_shell() {
        let missing = r#"exec failed: unable to start container process: exec: "/missing": stat /missing: no such file or directory"#;
        assert_eq!(code_of_shell(missing), Some(127));
        assert_eq!(code_of_shell(r#"exec: "x": executable file not found in $PATH: unknown"#), Some(127));
        assert_eq!(code_of_shell(r#"exec: "/etc/passwd": permission denied: unknown"#), Some(126));
        assert_eq!(code_of_shell("container not running"), None);
    }
}
