//! The output of a test program. The tests of this file run another test of the program in a separate process.

use std::process::Command;

/// Runs a test of this program, and returns its stdout and stderr.
fn run(test: &str, arguments: &[&str], log: Option<&str>) -> (String, String) {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", test]).args(arguments).env_remove("RUST_LOG");
    if let Some(log) = log {
        command.env("RUST_LOG", log);
    }
    let output = command.output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
    (stdout, stderr)
}

#[test]
fn the_log_of_the_operator_is_shown_on_request() {
    let test = "rights::what_is_declared_and_no_more_is_permitted";
    let (shown, _) = run(test, &["--nocapture"], Some("info"));
    assert!(shown.contains("starting workers") && shown.contains("copies"), "{shown}");
    let (hidden, _) = run(test, &["--nocapture"], None);
    assert!(!hidden.contains("starting workers"), "{hidden}");
}
