//! The pods that make room for pods of a higher priority.

use serde_json::{Value, json};

use super::cluster::{TestCluster, labelled, requesting};

fn prioritized(name: &str, priority: i32, cpu: &str, started: u8) -> Value {
    let mut pod = labelled(name, json!({"app": name}), requesting(json!({"cpu": cpu})));
    pod["spec"]["priority"] = json!(priority);
    pod["status"] = json!({"startTime": format!("2026-01-01T00:00:{started:02}Z")});
    pod
}

#[test]
fn the_least_important_pods_that_leave_enough_room_end() {
    let cluster = TestCluster::default().resources("n", json!({"cpu": "4", "memory": "8Gi", "pods": "10"}));
    let cluster = cluster
        .with("n", prioritized("old", 0, "1", 1))
        .with("n", prioritized("young", 0, "1", 2))
        .with("n", prioritized("better", 5, "1", 3))
        .with("n", prioritized("equal", 10, "1", 4));
    assert_eq!(cluster.victims(prioritized("p", 10, "1", 0)), Ok(("n".into(), vec!["young".into()])));
    let two = cluster.victims(prioritized("p", 10, "2", 0));
    assert_eq!(two, Ok(("n".into(), vec!["old".into(), "young".into()])));
    assert_eq!(
        cluster.victims(prioritized("p", 10, "4", 0)),
        Err("0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Insufficient cpu.".into())
    );
    assert_eq!(
        cluster.victims(prioritized("p", 0, "1", 0)),
        Err("0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found \
             for incoming pod."
            .into())
    );
}

#[test]
fn a_pod_that_never_preempts_waits() {
    let cluster = TestCluster::of(&["n"]).with("n", prioritized("low", 0, "2", 1));
    let mut pod = prioritized("p", 10, "1", 0);
    pod["spec"]["preemptionPolicy"] = json!("Never");
    assert_eq!(
        cluster.victims(pod),
        Err("0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.".into())
    );
}

#[test]
fn nodes_that_no_preemption_helps_are_counted() {
    let cluster = TestCluster::of(&["a", "b"]).with("a", prioritized("high", 20, "2", 1));
    let cluster = cluster.node("b", json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}));
    assert_eq!(
        cluster.victims(prioritized("p", 10, "1", 0)),
        Err("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/2 nodes are \
             available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
            .into())
    );
}

#[test]
fn the_node_with_the_least_important_victims_is_chosen() {
    let cluster = TestCluster::of(&["a", "b", "c"])
        .with("a", prioritized("five", 5, "2", 1))
        .with("b", prioritized("three", 3, "2", 1))
        .with("c", prioritized("four", 4, "2", 1));
    assert_eq!(cluster.victims(prioritized("p", 10, "1", 0)), Ok(("b".into(), vec!["three".into()])));
}

#[test]
fn budgets_are_kept_if_another_pod_can_end() {
    let cluster = || {
        TestCluster::of(&["a", "b"])
            .with("a", prioritized("kept", 0, "2", 1))
            .with("b", prioritized("better", 5, "2", 1))
    };
    let p = || prioritized("p", 10, "1", 0);
    assert_eq!(cluster().victims(p()), Ok(("a".into(), vec!["kept".into()])));
    let guarded = cluster().budget(json!({"app": "kept"}), 0);
    assert_eq!(guarded.victims(p()), Ok(("b".into(), vec!["better".into()])));
    let both = guarded.budget(json!({"app": "better"}), 0);
    assert!(both.victims(p()).is_ok(), "a budget does not stop a preemption");
}

#[test]
fn pods_that_repel_the_pod_end_too() {
    let term =
        json!({"labelSelector": {"matchLabels": {"app": "p"}}, "topologyKey": "kubernetes.io/hostname"});
    let mut lonely = prioritized("lonely", 0, "1", 1);
    lonely["spec"]["affinity"] =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let cluster = TestCluster::of(&["n"]).with("n", lonely);
    assert_eq!(cluster.victims(prioritized("p", 10, "1", 0)), Ok(("n".into(), vec!["lonely".into()])));
}

#[test]
fn a_pod_waits_for_the_pods_that_it_has_preempted() {
    let mut ending = prioritized("ending", 0, "2", 1);
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
    ending["status"]["conditions"] =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
    let cluster = TestCluster::of(&["n"]).with("n", ending);
    let mut pod = prioritized("p", 10, "1", 0);
    pod["status"]["nominatedNodeName"] = json!("n");
    assert_eq!(
        cluster.victims(pod),
        Err("0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to a terminating pod on the \
             nominated node."
            .into())
    );
}

#[test]
fn a_node_is_reserved_against_pods_of_a_lower_priority() {
    let mut cluster = TestCluster::of(&["n"]);
    let nominated = serde_json::from_value(prioritized("first", 10, "2", 0)).unwrap();
    let facts = crate::scheduler::cluster::PodFacts::of(&nominated);
    cluster.cluster.nominate(&super::cluster::key_of(&nominated), Some(("n".into(), facts)));
    assert!(cluster.choose(prioritized("low", 0, "1", 0)).is_err());
    assert_eq!(cluster.choose(prioritized("higher", 20, "1", 0)), Ok("n".into()));
    let mut first = prioritized("first", 10, "2", 0);
    first["status"]["nominatedNodeName"] = json!("n");
    assert_eq!(cluster.choose(first), Ok("n".into()));
}
