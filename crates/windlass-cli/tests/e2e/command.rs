//! The command: output, exit codes, and errors for bad input.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::process::{Windlass, windlass};

/// Returns the exit code, stdout and stderr of a command that ends.
fn outcome(arguments: &[&str]) -> (i32, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let output = windlass(arguments).current_dir(directory.path()).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn help_teaches_and_version_tells() {
    let (code, help, _) = outcome(&["--help"]);
    assert_eq!(code, 0);
    for word in ["windlass demo --tour", "windlass cluster", "Exit codes"] {
        assert!(help.contains(word), "{help}");
    }
    for verb in ["cluster", "demo", "kubeconfig"] {
        let (code, help, _) = outcome(&[verb, "--help"]);
        assert!(code == 0 && help.contains("Examples:"), "{help}");
    }
    assert_eq!(outcome(&["--version"]).1, format!("windlass {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_code_2() {
    for arguments in
        [&["clutser"][..], &["cluster", "--port", "70000"], &["demo", "--step-timeout", "5"], &[]]
    {
        let (code, _, said) = outcome(arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains("Usage") || said.contains("--help"), "{said}");
    }
}

#[test]
fn a_cluster_writes_its_kubeconfig_for_its_owner_only_and_ends_at_ctrl_c() {
    let mut cluster = Windlass::cluster(&[]);
    let written = fs::metadata(cluster.kubeconfig()).unwrap();
    assert_eq!(written.permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(cluster.kubeconfig()).unwrap().contains("https://127.0.0.1:"));
    cluster.signal("INT");
    assert_eq!(cluster.end().code(), Some(0));
    assert_eq!(cluster.complaints(), "");
}

#[test]
fn logs_go_to_stderr_and_have_no_colors_off_a_terminal() {
    let mut cluster = Windlass::start(&["cluster", "-v"]);
    cluster.until("Logs go to stderr");
    let line = cluster.next_log_line();
    assert!(line.contains("INFO"), "{line}");
    cluster.signal("INT");
    assert_eq!(cluster.end().code(), Some(0));
    let logs = line + &cluster.complaints();
    assert!(!logs.contains('\x1b'), "{logs}");
}

#[test]
fn sigterm_ends_it_as_well() {
    let mut cluster = Windlass::cluster(&["--bare"]);
    cluster.signal("TERM");
    assert_eq!(cluster.end().code(), Some(0));
}

/// Without the flag, the clusters of the other tests go on with an empty standard input.
#[test]
fn a_cluster_ends_with_its_standard_input_if_asked_to() {
    let mut cluster = Windlass::start_with_stdin(&["cluster", "--until-stdin-closes"], Stdio::piped());
    cluster.until("Ctrl-C stops it");
    assert!(cluster.runs());
    cluster.close_stdin();
    assert_eq!(cluster.end().code(), Some(0));
}

#[test]
fn a_port_that_is_taken_is_said_to_be() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, said, complaint) = outcome(&["cluster", "--port", &port]);
    assert_eq!((code, said.as_str()), (1, ""));
    assert!(complaint.starts_with("error: ") && complaint.contains(&port), "{complaint}");
    assert!(complaint.contains("in use") && complaint.contains("another port"), "{complaint}");
}

#[test]
fn a_kubeconfig_that_cannot_be_written_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    let path = directory.path().join("file/kubeconfig").display().to_string();
    for verb in ["cluster", "demo"] {
        let (code, _, complaint) = outcome(&[verb, "--kubeconfig", &path]);
        assert_eq!(code, 1);
        assert!(complaint.contains(&path) && complaint.contains("--kubeconfig FILE"), "{complaint}");
    }
}

#[test]
fn a_reader_that_goes_away_does_not_end_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = windlass(&["cluster"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let kubeconfig = directory.path().join(".windlass/kubeconfig");
    let end = std::time::Instant::now() + crate::process::patience();
    while !kubeconfig.exists() {
        assert!(std::time::Instant::now() < end);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(child.try_wait().unwrap().is_none(), "it has ended");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A request that never ends keeps the server waiting; the second Ctrl-C does not wait.
#[test]
fn the_second_ctrl_c_ends_it_at_once_with_code_1() {
    let mut cluster = Windlass::cluster(&[]);
    // Both signals are there before the first is acted on, or the second comes while connections drain.
    cluster.signal("STOP");
    cluster.signal("INT");
    cluster.signal("TERM");
    cluster.signal("CONT");
    assert_eq!(cluster.end().code(), Some(1));
}

#[test]
fn the_tour_sees_every_step() {
    let (code, said, complaint) = outcome(&["demo", "--tour"]);
    assert_eq!(code, 0, "{said}\n{complaint}");
    assert_eq!(said.matches("seen: ").count(), 5, "{said}");
    assert!(said.contains("All 5 steps had the expected result."), "{said}");
}

#[test]
fn a_tour_without_time_fails_and_says_at_which_step() {
    let (code, _, complaint) = outcome(&["demo", "--tour", "--step-timeout", "0"]);
    assert_eq!(code, 1);
    assert!(
        complaint.contains("the tour failed at step ") && complaint.contains("not reached within"),
        "{complaint}"
    );
}

#[test]
fn it_stays_small() {
    let mut demo = Windlass::start(&["demo"]);
    demo.until(" runs at 10.244.");
    let Ok(mappings) = fs::read_to_string(format!("/proc/{}/smaps", demo.id())) else { return };
    let kilobytes = allocated_kilobytes(&mappings);
    assert!(kilobytes < 20 * 1024, "{kilobytes} kB");
}

/// Returns the anonymous memory outside of mapped files. The pages of the program that the loader relocates are anonymous,
/// too; their number depends on the build.
fn allocated_kilobytes(mappings: &str) -> u64 {
    let mut of_file = false;
    let mut kilobytes = 0;
    for line in mappings.lines() {
        let mut fields = line.split_whitespace();
        match (fields.next(), fields.next()) {
            (Some("Anonymous:"), Some(size)) if !of_file => kilobytes += size.parse::<u64>().unwrap(),
            (Some(range), Some(_)) if !range.ends_with(':') => {
                of_file = fields.nth(3).is_some_and(|path| path.starts_with('/'));
            }
            _ => {}
        }
    }
    kilobytes
}
