//! A command that is killed leaves no operator behind.

use crate::interruptions::{runs, wait_for};
use crate::operator::{Project, one_version, two_versions};
use crate::process::Windlass;

/// Starts `windlass run`, waits for the operator, kills the command, and returns the process id of the operator.
fn kill_the_command_of(project: &Project, kubeconfig: &str, until: &str) -> String {
    let mut run = project.start(&["run", "--kubeconfig", kubeconfig]);
    run.until(until);
    let pid = wait_for("the operator has a record", || project.operators().pop());
    assert!(runs(&pid));
    run.signal("KILL");
    run.end();
    pid
}

#[test]
fn an_operator_ends_with_the_command_that_was_killed() {
    let cluster = Windlass::cluster(&[]);
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let project = Project::with_operator(&two_versions());
    project.ok(&["install", "--kubeconfig", &kubeconfig]);
    let pid = kill_the_command_of(&project, &kubeconfig, "the API server calls");
    wait_for("the operator ends", || (!runs(&pid)).then_some(()));
}

#[test]
fn the_next_command_ends_an_operator_that_was_left_behind() {
    let cluster = Windlass::cluster(&[]);
    let kubeconfig = cluster.kubeconfig().display().to_string();
    // The operator does not read standard input, like an operator of an earlier version.
    let project = Project::new(&one_version(), "echo started; exec sleep 1000");
    let pid = kill_the_command_of(&project, &kubeconfig, "started");
    assert!(runs(&pid));
    let mut second = project.start(&["run", "--kubeconfig", &kubeconfig]);
    second.until(&format!("ending the operator that a killed command left behind (process {pid})"));
    second.until("started");
    wait_for("the first operator ends", || (!runs(&pid)).then_some(()));
    // The operator of a living command keeps running.
    let other = wait_for("the operator has a record", || project.operators().pop());
    let mut third = project.start(&["run", "--kubeconfig", &kubeconfig]);
    third.until("started");
    assert!(runs(&other) && project.operators().len() == 2);
    for mut run in [second, third] {
        run.signal("TERM");
        run.end();
    }
    assert_eq!(project.operators(), Vec::<String>::new());
    assert!(!runs(&other));
}
