//! The introduction that `windlass demo` prints.

use std::path::Path;
use std::time::Duration;

use windlass_dev::shell_word;

use super::tour::SAMPLE;
use crate::output::Output;

/// Prints where the control plane is, and kubectl commands to try.
pub(super) fn print(out: &mut Output, url: &str, startup_time: Duration, kubeconfig: &Path) {
    let ready = startup_time.as_millis();
    out.line(format_args!("A Kubernetes control plane is ready at {url} ({ready} ms)."));
    out.line(format_args!("Its kubeconfig: {}", kubeconfig.display()));
    out.line("");
    out.line("Try in another terminal:");
    out.line("");
    out.line(format_args!("  export KUBECONFIG={}", absolute(kubeconfig)));
    for (command, comment) in [
        ("get custompods,pods".to_owned(), ""),
        ("get pods -w".to_owned(), ""),
        (format!("scale custompod {SAMPLE} --replicas=3"), "two more pods"),
        ("delete pod NAME".to_owned(), "another one replaces it"),
        (format!("get custompod {SAMPLE} -o yaml"), "status.podNames has the new pod"),
        (format!("delete custompod {SAMPLE}"), "its pods are deleted with it"),
    ] {
        let comment = if comment.is_empty() { String::new() } else { format!("  # {comment}") };
        let line = format!("  kubectl {command:<46}{comment}");
        out.line(line.trim_end());
    }
    out.line("");
    out.line("What happens (Ctrl-C stops it; nothing is kept):");
    out.line("");
}

/// Makes a path absolute, for use in any directory, and quotes the path for a shell.
fn absolute(path: &Path) -> String {
    shell_word(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}
