//! Derives the taints of nodes from conditions and from `spec.unschedulable`.

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(super) const NO_EXECUTE: &str = "NoExecute";
const NO_SCHEDULE: &str = "NoSchedule";
const NOT_READY: &str = "not-ready";
const UNREACHABLE: &str = "unreachable";

/// Returns the taints that a node must have: the taints for the node's conditions, and all taints that this
/// controller does not manage. With `evicts`, a node that is not ready evicts pods.
pub(super) fn taints(node: &Node, evicts: bool, now: &Time) -> Vec<Taint> {
    let spec = node.spec.clone().unwrap_or_default();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is = |kind: &str, status: &str| conditions.iter().any(|c| c.type_ == kind && c.status == status);
    let has_ready_condition = conditions.iter().any(|condition| condition.type_ == "Ready");
    let (is_not_ready, is_unreachable) = (is("Ready", "False"), is("Ready", "Unknown"));
    let managed = [
        (NOT_READY, NO_SCHEDULE, !has_ready_condition || is_not_ready),
        (UNREACHABLE, NO_SCHEDULE, is_unreachable),
        ("memory-pressure", NO_SCHEDULE, is("MemoryPressure", "True")),
        ("disk-pressure", NO_SCHEDULE, is("DiskPressure", "True")),
        ("pid-pressure", NO_SCHEDULE, is("PIDPressure", "True")),
        ("network-unavailable", NO_SCHEDULE, is("NetworkUnavailable", "True")),
        ("unschedulable", NO_SCHEDULE, spec.unschedulable == Some(true)),
        (NOT_READY, NO_EXECUTE, is_not_ready && evicts),
        (UNREACHABLE, NO_EXECUTE, is_unreachable && evicts),
    ]
    .map(|(name, effect, holds)| (format!("node.kubernetes.io/{name}"), effect, holds));
    let mut taints = spec.taints.unwrap_or_default();
    taints.retain(|taint| {
        !managed.iter().any(|(key, effect, holds)| !holds && *key == taint.key && *effect == taint.effect)
    });
    for (key, effect, _) in managed.into_iter().filter(|(_, _, holds)| *holds) {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == effect) {
            taints.push(Taint { key, effect: effect.to_owned(), time_added: Some(now.clone()), value: None });
        }
    }
    taints
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn keys_if(evicts: bool, spec: Value, ready: &str) -> Vec<String> {
        let node = json!({"spec": spec, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let node: Node = serde_json::from_value(node).unwrap();
        let taints = taints(&node, evicts, &Time(Timestamp::UNIX_EPOCH)).into_iter();
        taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
    }

    fn keys(spec: Value, ready: &str) -> Vec<String> {
        keys_if(false, spec, ready)
    }

    #[test]
    fn a_node_that_is_not_ready_takes_no_pods() {
        assert_eq!(keys(json!({}), "False"), ["node.kubernetes.io/not-ready:NoSchedule"]);
        assert_eq!(keys(json!({}), "Unknown"), ["node.kubernetes.io/unreachable:NoSchedule"]);
    }

    #[test]
    fn when_it_is_ready_the_taint_goes_and_those_of_others_stay() {
        let tainted = json!({"taints": [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            {"key": "example.com/mine", "effect": "NoSchedule"},
        ]});
        assert_eq!(keys(tainted, "True"), ["example.com/mine:NoSchedule"]);
    }

    #[test]
    fn a_cordoned_node_is_tainted_too() {
        assert_eq!(
            keys(json!({"unschedulable": true}), "True"),
            ["node.kubernetes.io/unschedulable:NoSchedule"]
        );
    }

    #[test]
    fn a_node_that_is_not_ready_evicts_pods_if_other_nodes_are_ready() {
        let lost = ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"];
        assert_eq!(keys_if(true, json!({}), "Unknown"), lost);
        let evicting = json!({"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]});
        assert_eq!(keys_if(false, evicting.clone(), "Unknown"), [lost[0]]);
        assert!(keys_if(true, evicting, "True").is_empty());
    }
}
