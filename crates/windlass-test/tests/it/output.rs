//! The output of a test program. The tests of this file run another test of the program in a separate process.

use std::process::Command;

use serde_json::{Value, json};
use windlass_test::TestCluster;

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

fn with_rule() -> Value {
    let rule = json!([{ "rule": "self.min <= self.max" }]);
    json!({
        "metadata": { "name": "bars.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "bars", "kind": "Bar" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                    "type": "object", "x-kubernetes-validations": rule,
                    "properties": { "min": { "type": "integer" }, "max": { "type": "integer" } },
                } } } },
            }],
        },
    })
}

#[tokio::test]
async fn a_definition_with_a_rule_is_installed_twice() {
    let definition = serde_json::from_value(with_rule()).expect("a CRD");
    for _ in 0..2 {
        TestCluster::start().await.install(&definition).await;
    }
}

#[test]
fn a_rule_that_is_not_evaluated_is_named_once() {
    let (_, shown) = run("output::a_definition_with_a_rule_is_installed_twice", &[], None);
    let warnings: Vec<&str> = shown.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(
        warnings,
        [
            "warning: bars.example.com, version v1, spec: the CEL rule `self.min <= self.max` is not evaluated by the embedded API server"
        ],
    );
}
