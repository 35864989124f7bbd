//! What to know at the start: where the control plane is, and what to try.

use std::path::Path;
use std::time::Duration;

use super::tour::SAMPLE;
use crate::voice::Voice;

/// Opens the demo.
pub(super) fn open(voice: &mut Voice, url: &str, took: Duration, kubeconfig: &Path) {
    let path = kubeconfig.display();
    voice
        .line(format_args!("A Kubernetes control plane serves at {url} (ready in {} ms).", took.as_millis()));
    voice.line(format_args!("Its kubeconfig: {path}"));
    voice.line("");
    voice.line("Try in another terminal:");
    voice.line("");
    voice.line(format_args!("  export KUBECONFIG={}", absolute(kubeconfig)));
    for (command, comment) in [
        ("get custompods,pods".to_owned(), ""),
        ("get pods -w".to_owned(), ""),
        (format!("scale custompod {SAMPLE} --replicas=3"), "two pods more"),
        ("delete pod NAME".to_owned(), "another takes its place"),
        (format!("get custompod {SAMPLE} -o yaml"), "status.podNames follows"),
        (format!("delete custompod {SAMPLE}"), "its pods go along"),
    ] {
        let comment = if comment.is_empty() { String::new() } else { format!("  # {comment}") };
        let line = format!("  kubectl {command:<46}{comment}");
        voice.line(line.trim_end());
    }
    voice.line("");
    voice.line("What happens (Ctrl-C ends it; nothing is kept):");
    voice.line("");
}

/// The path that works from any directory, where it can be found out.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
