//! The pods to delete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::ResourceExt;

use crate::{conditions, pods};

/// How many pods that have ended are kept in a cluster.
const KEPT: usize = 12_500;
/// The time for which a node must be missing before the node's pods are deleted.
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The nodes of pods that do not exist, since when.
pub(super) type Missing = BTreeMap<String, Timestamp>;

/// The pods to delete.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Regardless of the node.
    pub(super) delete: Vec<Arc<Pod>>,
    /// If the node does not exist.
    pub(super) orphans: Vec<Arc<Pod>>,
}

/// Plans a pass over all pods.
pub(super) fn plan(pods: &[Arc<Pod>], nodes: &[Arc<Node>], missing: &mut Missing, now: Timestamp) -> Plan {
    let mut plan = Plan { delete: too_many(pods, KEPT), orphans: Vec::new() };
    let existing: BTreeMap<String, &Arc<Node>> = nodes.iter().map(|node| (node.name_any(), node)).collect();
    let stuck = |pod: &&Arc<Pod>| {
        let node = existing.get(node_of(pod));
        pods::is_terminating(pod) && node.is_some_and(|node| is_out_of_service(node))
    };
    plan.delete.extend(pods.iter().filter(stuck).cloned());
    let unknown: BTreeSet<&str> = pods
        .iter()
        .map(|pod| node_of(pod))
        .filter(|node| !node.is_empty() && !existing.contains_key(*node))
        .collect();
    missing.retain(|node, _| unknown.contains(node.as_str()));
    for node in unknown {
        missing.entry(node.to_owned()).or_insert(now);
    }
    let is_gone =
        |node: &str| missing.get(node).is_some_and(|since| now.duration_since(*since) >= QUARANTINE);
    plan.orphans.extend(pods.iter().filter(|pod| is_gone(node_of(pod))).cloned());
    let unscheduled = |pod: &&Arc<Pod>| pods::is_terminating(pod) && node_of(pod).is_empty();
    plan.delete.extend(pods.iter().filter(unscheduled).cloned());
    plan
}

/// Returns the name of the node of a pod; empty without a node.
pub(super) fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Returns the ended pods beyond the limit: first evicted pods, then the oldest pods.
fn too_many(pods: &[Arc<Pod>], kept: usize) -> Vec<Arc<Pod>> {
    let mut ended: Vec<&Arc<Pod>> =
        pods.iter().filter(|pod| !matches!(pods::phase(pod), "Pending" | "Running" | "Unknown")).collect();
    let Some(surplus) = ended.len().checked_sub(kept).filter(|surplus| *surplus > 0) else {
        return Vec::new();
    };
    ended.sort_by_cached_key(|pod| {
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (!is_evicted(pod), created, pod.name_any())
    });
    ended.into_iter().take(surplus).cloned().collect()
}

fn is_evicted(pod: &Pod) -> bool {
    let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref());
    pods::phase(pod) == "Failed" && reason == Some("Evicted")
}

/// Returns whether an administrator has said that the node does not run any more.
fn is_out_of_service(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    !conditions::is_true(conditions, "Ready") && taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, change: Value) -> Arc<Pod> {
        let mut pod =
            json!({"metadata": {"name": name}, "spec": {"containers": []}, "status": {"phase": "Running"}});
        merge(&mut pod, change);
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn merge(object: &mut Value, change: Value) {
        match (object, change) {
            (Value::Object(fields), Value::Object(changes)) => {
                for (key, change) in changes {
                    merge(fields.entry(key).or_insert(Value::Null), change);
                }
            }
            (place, change) => *place = change,
        }
    }

    fn node(name: &str, taint: Option<&str>, ready: &str) -> Arc<Node> {
        let taints: Vec<Value> = taint.iter().map(|key| json!({"key": key, "effect": "NoExecute"})).collect();
        let node = json!({
            "metadata": {"name": name}, "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        Arc::new(serde_json::from_value(node).unwrap())
    }

    fn names(pods: &[Arc<Pod>]) -> Vec<String> {
        pods.iter().map(|pod| pod.name_any()).collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn pods_of_a_node_that_is_gone_are_deleted_after_a_quarantine() {
        let orphan =
            [pod("a", json!({"spec": {"nodeName": "gone"}})), pod("b", json!({"spec": {"nodeName": "n"}}))];
        let nodes = [node("n", None, "True")];
        let mut missing = Missing::new();
        let mut orphans =
            |nodes: &[Arc<Node>], second| names(&plan(&orphan, nodes, &mut missing, at(second)).orphans);
        assert!(orphans(&nodes, 0).is_empty());
        assert!(orphans(&nodes, 39).is_empty());
        assert_eq!(orphans(&nodes, 40), ["a"]);
        let back = [node("n", None, "True"), node("gone", None, "True")];
        assert!(orphans(&back, 60).is_empty());
        assert!(orphans(&nodes, 80).is_empty(), "the quarantine begins anew");
    }

    #[test]
    fn terminating_pods_that_no_kubelet_removes_are_deleted() {
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let on = |node: &str| json!({"metadata": deleted["metadata"].clone(), "spec": {"nodeName": node}});
        let pods = [
            pod("waits", json!({})),
            pod("unscheduled", deleted.clone()),
            pod("well", on("well")),
            pod("down", on("down")),
            pod("tainted", on("tainted")),
        ];
        let nodes = [
            node("well", None, "True"),
            node("down", Some(OUT_OF_SERVICE), "False"),
            node("tainted", Some(OUT_OF_SERVICE), "True"),
        ];
        let plan = plan(&pods, &nodes, &mut Missing::new(), at(0));
        assert_eq!(names(&plan.delete), ["down", "unscheduled"]);
    }

    #[test]
    fn of_ended_pods_the_evicted_and_then_the_oldest_are_deleted() {
        let ended = |name: &str, created: i64, reason: &str| {
            let created = at(created).to_string();
            pod(
                name,
                json!({"metadata": {"creationTimestamp": created}, "status": {"phase": "Failed", "reason": reason}}),
            )
        };
        let pods = [
            ended("young", 30, ""),
            ended("old", 10, ""),
            ended("evicted", 40, "Evicted"),
            pod("runs", json!({})),
        ];
        assert_eq!(names(&too_many(&pods, 1)), ["evicted", "old"]);
        assert!(too_many(&pods, 3).is_empty());
    }
}
