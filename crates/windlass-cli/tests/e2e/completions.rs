//! The completions, loaded by each shell. A missing shell is skipped, with a message on stderr.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::windlass;

/// The user's lines: load the script `_windlass`, and complete `windlass mani`.
const SHELLS: [(&str, &[&str], &str); 3] = [
    (
        "bash",
        &["--norc", "-c"],
        "set -e; source ./_windlass; complete -p windlass >&2; \
         COMP_WORDS=(windlass mani) COMP_CWORD=1; _windlass windlass mani windlass; echo \"${COMPREPLY[@]}\"",
    ),
    // zsh completes only at a terminal: the test loads the function like the completion system, and calls the
    // function.
    (
        "zsh",
        &["-f", "-c"],
        "setopt err_exit; fpath=(. $fpath); autoload -Uz compinit; compinit -u -D; \
         autoload -Uz +X _windlass; source ./_windlass; [[ $_comps[windlass] == _windlass ]]; \
         functions _windlass_commands | grep -o manifests:",
    ),
    ("fish", &["--no-config", "-c"], "source ./_windlass; and complete -C 'windlass mani'"),
];

fn script(shell: &str) -> String {
    let output = windlass(&["completions", shell]).output().unwrap();
    assert!(output.status.success(), "{shell}");
    String::from_utf8(output.stdout).unwrap()
}

/// Types a line into a shell. Returns `None` if the shell is not installed.
fn type_into(shell: &str, flags: &[&str], line: &str, folder: &Path) -> Option<(bool, String, String)> {
    let output = Command::new(shell).args(flags).arg(line).current_dir(folder).output().ok()?;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some((output.status.success(), text(output.stdout), text(output.stderr)))
}

#[test]
fn scripts_are_for_four_shells() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        assert!(script(shell).contains("uninstall"), "{shell}");
    }
}

#[test]
fn shells_load_their_scripts_and_complete_with_them() {
    for (shell, flags, line) in SHELLS {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("_windlass"), script(shell)).unwrap();
        let Some((success, said, complaints)) = type_into(shell, flags, line, folder.path()) else {
            eprintln!("{shell} is not installed");
            continue;
        };
        assert!(success && said.starts_with("manifests"), "{shell}: {said}\n{complaints}");
        let loaded = complaints.lines().filter(|line| !line.starts_with("complete "));
        assert_eq!(loaded.collect::<Vec<_>>(), Vec::<&str>::new(), "{shell}");
    }
}
