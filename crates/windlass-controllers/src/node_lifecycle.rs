//! Derives the taints of nodes from conditions and from `spec.unschedulable`.

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_client::api::{Api, Patch};
use kube_core::ResourceExt;
use serde_json::json;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Result};

use crate::component::{self, KUBE_CONTROLLER_MANAGER};

const NO_SCHEDULE: &str = "NoSchedule";

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Node>(reconcile).named("node-lifecycle-controller")
}

async fn reconcile(key: ObjectKey, cx: Context<Node>) -> Result<Action> {
    let Some(node) = cx.get(&key)? else { return Ok(Action::done()) };
    let wanted = taints(&node, &Time(cx.now()));
    let has = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    if has == wanted {
        return Ok(Action::done());
    }
    let metadata = json!({ "uid": node.uid(), "resourceVersion": node.resource_version() });
    let taints = if wanted.is_empty() { json!(null) } else { json!(wanted) };
    let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { "taints": taints } }));
    let nodes: Api<Node> = Api::all(cx.client().clone());
    match nodes
        .patch(&node.name_any(), &component::patch(KUBE_CONTROLLER_MANAGER), &patch)
        .await
        .map_err(Error::from)
    {
        Err(error) if error.is_not_found() => Ok(Action::done()),
        other => other.map(|_| Action::done()),
    }
}

/// Returns the taints that a node must have: the taints for the node's conditions, and all taints that this
/// controller does not manage.
fn taints(node: &Node, now: &Time) -> Vec<Taint> {
    let spec = node.spec.clone().unwrap_or_default();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is = |kind: &str, status: &str| conditions.iter().any(|c| c.type_ == kind && c.status == status);
    let has_ready_condition = conditions.iter().any(|condition| condition.type_ == "Ready");
    let ours = [
        ("not-ready", !has_ready_condition || is("Ready", "False")),
        ("unreachable", is("Ready", "Unknown")),
        ("memory-pressure", is("MemoryPressure", "True")),
        ("disk-pressure", is("DiskPressure", "True")),
        ("pid-pressure", is("PIDPressure", "True")),
        ("network-unavailable", is("NetworkUnavailable", "True")),
        ("unschedulable", spec.unschedulable == Some(true)),
    ]
    .map(|(name, holds)| (format!("node.kubernetes.io/{name}"), holds));
    let mut taints = spec.taints.unwrap_or_default();
    taints.retain(|taint| {
        taint.effect != NO_SCHEDULE || !ours.iter().any(|(key, holds)| *key == taint.key && !holds)
    });
    for (key, _) in ours.into_iter().filter(|(_, holds)| *holds) {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == NO_SCHEDULE) {
            let effect = NO_SCHEDULE.to_owned();
            taints.push(Taint { key, effect, time_added: Some(now.clone()), value: None });
        }
    }
    taints
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn keys(spec: Value, ready: &str) -> Vec<String> {
        let node = json!({"spec": spec, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let node: Node = serde_json::from_value(node).unwrap();
        taints(&node, &Time(Timestamp::UNIX_EPOCH)).into_iter().map(|taint| taint.key).collect()
    }

    #[test]
    fn a_node_that_is_not_ready_takes_no_pods() {
        assert_eq!(keys(json!({}), "False"), ["node.kubernetes.io/not-ready"]);
        assert_eq!(keys(json!({}), "Unknown"), ["node.kubernetes.io/unreachable"]);
    }

    #[test]
    fn when_it_is_ready_the_taint_goes_and_those_of_others_stay() {
        let tainted = json!({"taints": [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            {"key": "example.com/mine", "effect": "NoSchedule"},
        ]});
        assert_eq!(keys(tainted, "True"), ["example.com/mine"]);
    }

    #[test]
    fn a_cordoned_node_is_tainted_too() {
        assert_eq!(keys(json!({"unschedulable": true}), "True"), ["node.kubernetes.io/unschedulable"]);
    }
}
