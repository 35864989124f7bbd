//! Signals to a command that waits for cargo: no started process outlives the command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::process::{patience, windlass};

/// A cargo that never ends, with a child that never ends, as a compiler or a test.
const CARGO: &str =
    "#!/bin/sh\nsleep 1000 &\necho $$ $! > \"$0.pids.new\"\nmv \"$0.pids.new\" \"$0.pids\"\nwait\n";

/// Waits until `look` returns a value.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not in time: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Returns whether a process runs. A zombie does not run.
pub(crate) fn runs(pid: &str) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let state = String::from_utf8(state.stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

fn write_cargo(path: &Path) {
    fs::write(path, CARGO).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Sends a signal to a verb while cargo runs, and waits until all processes have ended.
#[track_caller]
fn interrupt(verb: &[&str], signal: &str) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("operator-demo");
    fs::create_dir_all(&project).unwrap();
    let init = windlass(&["init", "--domain", "abc.com"]).current_dir(&project).output().unwrap();
    assert!(init.status.success());
    let cargo = folder.path().join("cargo");
    write_cargo(&cargo);
    let mut command = windlass(verb)
        .current_dir(&project)
        .env("CARGO", &cargo)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pids = wait_for("cargo starts", || fs::read_to_string(folder.path().join("cargo.pids")).ok());
    let sent =
        Command::new("kill").args([&format!("-{signal}"), &command.id().to_string()]).status().unwrap();
    assert!(sent.success());
    wait_for("the command ends", || command.try_wait().unwrap());
    for pid in pids.split_whitespace() {
        wait_for(&format!("{verb:?}, {signal}: cargo and its child end"), || (!runs(pid)).then_some(()));
    }
}

#[test]
fn verbs_that_build_end_their_cargo() {
    for verb in [&["manifests"][..], &["generate"], &["check"], &["dev"], &["test"]] {
        interrupt(verb, "TERM");
    }
    interrupt(&["manifests"], "INT");
    interrupt(&["test"], "INT");
}

#[test]
fn verbs_that_work_on_a_cluster_end_their_cargo() {
    let cluster = crate::process::Windlass::cluster(&[]);
    let kubeconfig = cluster.kubeconfig().display().to_string();
    for verb in ["run", "install", "uninstall"] {
        interrupt(&[verb, "--kubeconfig", &kubeconfig], "TERM");
    }
}
