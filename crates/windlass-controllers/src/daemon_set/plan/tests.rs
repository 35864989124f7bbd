use serde_json::{Value, json};

use super::*;

fn set(spec: Value) -> DaemonSet {
    let mut base = json!({
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": []}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    });
    base.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata = json!({"name": "d", "namespace": "n", "uid": "u", "generation": 2});
    serde_json::from_value(json!({"metadata": metadata, "spec": base})).unwrap()
}

fn node(name: &str, taints: Value) -> Arc<Node> {
    let metadata = json!({"name": name, "labels": {"name": name}});
    Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": {"taints": taints}})).unwrap())
}

fn pod(name: &str, node: &str, hash: &str, ready: bool) -> Arc<Pod> {
    let ready = if ready { "True" } else { "False" };
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "n", "labels": {"controller-revision-hash": hash}},
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap(),
    )
}

fn next(set: &DaemonSet, nodes: &[Arc<Node>], pods: &[Arc<Pod>]) -> Plan {
    let now = "2026-01-01T00:00:30Z".parse().unwrap();
    plan(Input { set, nodes, pods, hash: "new", now }, &mut Failures::default())
}

fn deleted(plan: &Plan) -> Vec<&str> {
    plan.delete.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect()
}

#[test]
fn every_node_that_it_tolerates_and_selects_gets_a_pod() {
    let no_schedule = json!([{"key": "k", "effect": "NoSchedule"}]);
    let cordoned = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    let nodes = [node("a", json!([])), node("b", no_schedule), node("c", cordoned)];
    let plain = next(&set(json!({})), &nodes, &[]);
    assert_eq!(plain.create, ["a", "c"]);
    assert_eq!((plain.status.desired_number_scheduled, plain.status.number_unavailable), (2, Some(2)));
    let chosen = json!({"template": {"spec": {"containers": [], "nodeSelector": {"name": "c"}}}});
    assert_eq!(next(&set(chosen), &nodes, &[]).create, ["c"]);
}

#[test]
fn a_pod_stays_on_a_tainted_node_unless_the_taint_evicts_it() {
    let taint = |effect: &str| [node("a", json!([{"key": "k", "effect": effect}]))];
    let there = [pod("p", "a", "new", true)];
    let stays = next(&set(json!({})), &taint("NoSchedule"), &there);
    assert_eq!((stays.delete.len(), stays.status.number_misscheduled), (0, 1));
    assert_eq!(deleted(&next(&set(json!({})), &taint("NoExecute"), &there)), ["p"]);
}

#[test]
fn a_rolling_update_replaces_as_many_as_may_be_unavailable() {
    let nodes = [node("a", json!([])), node("b", json!([])), node("c", json!([]))];
    let old = |name: &str, ready| pod(name, name, "old", ready);
    let pods = [old("a", true), old("b", true), old("c", true)];
    assert_eq!(deleted(&next(&set(json!({})), &nodes, &pods)), ["a"]);
    let broken = [old("a", true), old("b", false), old("c", true)];
    assert_eq!(deleted(&next(&set(json!({})), &nodes, &broken)), ["b"], "the broken one goes first");
    let manual = set(json!({"updateStrategy": {"type": "OnDelete"}}));
    assert_eq!(deleted(&next(&manual, &nodes, &pods)), Vec::<&str>::new());
}

#[test]
fn with_a_surge_the_new_pod_comes_before_the_old_one_goes() {
    let rolling = json!({"maxSurge": 1, "maxUnavailable": 0});
    let set = set(json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}));
    let nodes = [node("a", json!([])), node("b", json!([]))];
    let (a, b) = (pod("a", "a", "old", true), pod("b", "b", "old", true));
    assert_eq!(next(&set, &nodes, &[a.clone(), b.clone()]).create, ["a"]);
    let starting = next(&set, &nodes, &[a.clone(), b.clone(), pod("a2", "a", "new", false)]);
    assert_eq!((starting.create.len(), starting.delete.len()), (0, 0));
    assert_eq!(deleted(&next(&set, &nodes, &[a, b, pod("a2", "a", "new", true)])), ["a"]);
}

#[test]
fn a_pod_that_ended_is_told_of_and_deleted() {
    let mut failed = (*pod("p", "a", "new", false)).clone();
    failed.status.as_mut().unwrap().phase = Some("Failed".to_owned());
    let plan = next(&set(json!({})), &[node("a", json!([]))], &[Arc::new(failed)]);
    assert_eq!(deleted(&plan), ["p"]);
    assert_eq!(plan.events[0].reason, "FailedDaemonPod");
}
