//! The pods to create and delete for a ReplicaSet, and its next status.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::conditions;

/// The changes to make, and the status before they are made.
#[derive(Debug)]
pub(super) struct Plan {
    pub create: usize,
    /// The pods to delete, first those that are least ready.
    pub delete: Vec<Arc<Pod>>,
    pub status: ReplicaSetStatus,
    /// When a ready pod becomes available.
    pub wake_at: Option<Timestamp>,
}

/// The largest number of pods that are created or deleted in one reconcile, as in Kubernetes.
const BURST: usize = 500;

/// Plans the next step for the pods that the ReplicaSet controls.
pub(super) fn plan(set: &ReplicaSet, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    let spec = set.spec.clone().unwrap_or_default();
    let mut active: Vec<Arc<Pod>> = pods.iter().filter(|pod| is_active(pod)).cloned().collect();
    let (status, wake_at) = status_of(set, &active, now);
    let wanted = if set.metadata.deletion_timestamp.is_some() {
        active.len()
    } else {
        usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0)
    };
    active.sort_by_cached_key(|pod| deletion_rank(pod));
    let surplus = active.len().saturating_sub(wanted).min(BURST);
    let create = wanted.saturating_sub(active.len()).min(BURST);
    active.truncate(surplus);
    Plan { create, delete: active, status, wake_at }
}

/// Returns whether a pod counts: it has neither ended nor is terminating.
pub(super) fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

fn status_of(set: &ReplicaSet, active: &[Arc<Pod>], now: Timestamp) -> (ReplicaSetStatus, Option<Timestamp>) {
    let spec = set.spec.clone().unwrap_or_default();
    let min_ready = SignedDuration::from_secs(spec.min_ready_seconds.unwrap_or(0).into());
    let labels = spec.template.and_then(|template| template.metadata).and_then(|meta| meta.labels);
    let labels = labels.unwrap_or_default();
    let fully_labelled = |pod: &Pod| {
        labels.iter().all(|(key, value)| {
            pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|v| v == value)
        })
    };
    let ready: Vec<Timestamp> = active.iter().filter_map(|pod| ready_since(pod)).collect();
    let due = |since: &Timestamp| since.checked_add(min_ready).unwrap_or(Timestamp::MAX);
    let available = ready.iter().filter(|since| min_ready.is_zero() || due(since) <= now).count();
    let wake_at = ready.iter().map(due).filter(|due| !min_ready.is_zero() && *due > now).min();
    let status = ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: nonzero(active.iter().filter(|pod| fully_labelled(pod)).count()),
        ready_replicas: nonzero(ready.len()),
        available_replicas: nonzero(available),
        observed_generation: set.metadata.generation,
        ..set.status.clone().unwrap_or_default()
    };
    (status, wake_at)
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Returns a number as a status contains it: absent if it is 0.
fn nonzero(n: usize) -> Option<i32> {
    (n > 0).then_some(count(n))
}

/// Returns since when the pod is ready, or `None` if it is not.
fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let found =
        pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == "Ready")?;
    (found.status == "True")
        .then(|| found.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0))
}

/// Returns the rank for deletion. First come pods that are not scheduled, not running or not ready; then those with a low deletion
/// cost; then the youngest.
fn deletion_rank(pod: &Pod) -> impl Ord + use<> {
    let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let status = pod.status.clone().unwrap_or_default();
    let phase = match status.phase.as_deref() {
        Some("Running") => 2,
        Some("Unknown") => 1,
        _ => 0,
    };
    let ready = conditions::is_true(status.conditions.as_ref(), "Ready");
    let annotations = pod.metadata.annotations.as_ref();
    let cost: i32 = annotations
        .and_then(|annotations| annotations.get("controller.kubernetes.io/pod-deletion-cost"))
        .and_then(|cost| cost.parse().ok())
        .unwrap_or(0);
    let restarts = status.container_statuses.iter().flatten().map(|status| status.restart_count).max();
    let age = (Reverse(ready_since(pod)), Reverse(restarts));
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (placed, phase, ready, cost, age, Reverse(created), pod.metadata.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(replicas: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"name": "s", "generation": 4},
            "spec": {"replicas": replicas, "selector": {}, "template": {"metadata": {"labels": {"app": "a"}}}},
        }))
        .unwrap()
    }

    fn pod(name: &str, change: Value) -> Arc<Pod> {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": "a"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [], "nodeName": "n"},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        merge(&mut pod, change);
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn merge(into: &mut Value, change: Value) {
        match (into, change) {
            (Value::Object(into), Value::Object(change)) => {
                for (key, value) in change {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, change) => *into = change,
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:30Z".parse().unwrap()
    }

    fn deleted(plan: &Plan) -> Vec<&str> {
        plan.delete.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect()
    }

    #[test]
    fn it_makes_what_is_missing() {
        let plan = plan(&set(3), &[pod("a", json!({}))], now());
        assert_eq!((plan.create, plan.delete.len()), (2, 0));
        assert_eq!((plan.status.replicas, plan.status.ready_replicas), (1, Some(1)));
        assert_eq!(plan.status.observed_generation, Some(4));
    }

    #[test]
    fn pods_that_ended_or_leave_do_not_count() {
        let ended = pod("a", json!({"status": {"phase": "Failed"}}));
        let leaving = pod("b", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        assert_eq!(plan(&set(1), &[ended, leaving], now()).create, 1);
    }

    #[test]
    fn the_least_useful_pods_go_first() {
        let pods = [
            pod("old", json!({})),
            pod("young", json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:09Z"}})),
            pod(
                "dear",
                json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "5"}}}),
            ),
            pod("unready", json!({"status": {"conditions": []}})),
            pod("pending", json!({"status": {"phase": "Pending", "conditions": []}})),
            pod(
                "unplaced",
                json!({"spec": {"nodeName": null}, "status": {"phase": "Pending", "conditions": []}}),
            ),
        ];
        let plan = plan(&set(0), &pods, now());
        assert_eq!(deleted(&plan), ["unplaced", "pending", "unready", "young", "old", "dear"]);
    }

    #[test]
    fn a_ready_pod_is_available_after_min_ready_seconds() {
        let mut set = set(1);
        set.spec.as_mut().unwrap().min_ready_seconds = Some(60);
        let plan = plan(&set, &[pod("a", json!({}))], now());
        assert_eq!((plan.status.ready_replicas, plan.status.available_replicas), (Some(1), None));
        assert_eq!(plan.wake_at, Some("2026-01-01T00:01:00Z".parse().unwrap()));
    }

    #[test]
    fn a_set_on_its_way_out_touches_no_pod() {
        let mut set = set(3);
        set.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        let plan = plan(&set, &[pod("a", json!({}))], now());
        assert_eq!((plan.create, plan.delete.len()), (0, 0));
    }
}
