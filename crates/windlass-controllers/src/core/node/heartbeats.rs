//! The heartbeats of nodes, and the conditions of nodes without heartbeats.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::ResourceExt;

use crate::conditions;

/// The time that a new node has until the first status, as in kube-controller-manager.
const STARTUP_GRACE_PERIOD: SignedDuration = SignedDuration::from_mins(1);

/// The conditions that a kubelet reports.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The last heartbeat of each node. Only changes count, not the times in the objects: the clock of a node may be wrong.
#[derive(Debug, Default)]
pub(super) struct Heartbeats(BTreeMap<String, Heartbeat>);

#[derive(Debug)]
struct Heartbeat {
    uid: Option<String>,
    renewed: Option<MicroTime>,
    reported: Option<Time>,
    since: Timestamp,
}

impl Heartbeats {
    /// Records the heartbeats of a node, and returns when the last heartbeat was seen.
    pub(super) fn observe(&mut self, node: &Node, lease: Option<&Lease>, now: Timestamp) -> Timestamp {
        let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.clone());
        let reported = ready(node).and_then(|condition| condition.last_heartbeat_time.clone());
        let uid = node.metadata.uid.clone();
        match self.0.get(&node.name_any()) {
            Some(last) if (&last.uid, &last.renewed, &last.reported) == (&uid, &renewed, &reported) => {
                last.since
            }
            _ => {
                self.0.insert(node.name_any(), Heartbeat { uid, renewed, reported, since: now });
                now
            }
        }
    }

    pub(super) fn forget(&mut self, node: &str) {
        self.0.remove(node);
    }
}

/// Returns the condition `Ready`.
pub(super) fn ready(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

/// Returns when a node is lost if no heartbeat follows.
pub(super) fn deadline(node: &Node, last_heartbeat: Timestamp, grace: SignedDuration) -> Timestamp {
    let created = node.metadata.creation_timestamp.as_ref().map_or(last_heartbeat, |time| time.0);
    let (since, grace) =
        if ready(node).is_some() { (last_heartbeat, grace) } else { (created, STARTUP_GRACE_PERIOD) };
    since.checked_add(grace).unwrap_or(Timestamp::MAX)
}

/// Returns the conditions of a node without heartbeats: unknown. `None` if the conditions say so already.
pub(super) fn lost(node: &Node, now: Timestamp) -> Option<Vec<NodeCondition>> {
    let mut list = node.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let before = list.clone();
    for kind in REPORTED {
        let known = list.iter().find(|condition| condition.type_ == kind).cloned();
        let (reason, message) = match &known {
            Some(condition) if condition.status == "Unknown" => continue,
            Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
            None => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
        };
        let last_heartbeat_time = known.map_or_else(
            || node.metadata.creation_timestamp.clone(),
            |condition| condition.last_heartbeat_time,
        );
        let condition = NodeCondition {
            type_: kind.to_owned(),
            status: "Unknown".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time,
            last_transition_time: None,
        };
        conditions::set(&mut list, condition, &Time(now));
    }
    (list != before).then_some(list)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(conditions: Value) -> Node {
        let metadata = json!({"name": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap()
    }

    fn lease(renewed: &str) -> Lease {
        serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"renewTime": renewed}})).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_renewed_lease_or_a_report_is_a_heartbeat() {
        let mut heartbeats = Heartbeats::default();
        let ready =
            |time: &str| node(json!([{"type": "Ready", "status": "True", "lastHeartbeatTime": time}]));
        let first = ready("2026-01-01T00:00:00Z");
        let renewed = lease("2026-01-01T00:00:00.000000Z");
        assert_eq!(heartbeats.observe(&first, Some(&renewed), at(1)), at(1));
        assert_eq!(heartbeats.observe(&first, Some(&renewed), at(2)), at(1));
        let again = lease("2026-01-01T00:00:10.000000Z");
        assert_eq!(heartbeats.observe(&first, Some(&again), at(3)), at(3));
        let reported = ready("2026-01-01T00:05:00Z");
        assert_eq!(heartbeats.observe(&reported, Some(&again), at(4)), at(4));
        heartbeats.forget("n");
        assert_eq!(heartbeats.observe(&reported, Some(&again), at(5)), at(5));
    }

    #[test]
    fn the_conditions_of_a_lost_node_are_unknown() {
        let reported = node(json!([{"type": "Ready", "status": "True", "reason": "KubeletReady"}]));
        let lost_conditions = lost(&reported, at(100)).unwrap();
        let shown: Vec<_> = lost_conditions
            .iter()
            .map(|c| (c.type_.as_str(), c.status.as_str(), c.reason.as_deref().unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                ("Ready", "Unknown", "NodeStatusUnknown"),
                ("MemoryPressure", "Unknown", "NodeStatusNeverUpdated"),
                ("DiskPressure", "Unknown", "NodeStatusNeverUpdated"),
                ("PIDPressure", "Unknown", "NodeStatusNeverUpdated"),
            ]
        );
        let node = node(serde_json::to_value(&lost_conditions).unwrap());
        assert_eq!(lost(&node, at(200)), None);
    }

    #[test]
    fn a_new_node_has_a_minute() {
        let grace = SignedDuration::from_secs(50);
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let minute = created.checked_add(SignedDuration::from_mins(1)).unwrap();
        assert_eq!(deadline(&node(json!([])), at(0), grace), minute);
        assert_eq!(deadline(&node(json!([{"type": "Ready", "status": "True"}])), at(7), grace), at(57));
    }
}
