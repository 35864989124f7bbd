//! The pods to create and delete for a ReplicaSet, and the next status.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use crate::pods;

/// The changes to make, and the status before the changes.
#[derive(Debug)]
pub(super) struct Plan {
    pub create: usize,
    /// The pods to delete, beginning with the least ready pods.
    pub delete: Vec<Arc<Pod>>,
    pub status: ReplicaSetStatus,
    /// When a ready pod becomes available.
    pub wake_at: Option<Timestamp>,
}

/// The largest number of pods that a reconcile creates or deletes, as in Kubernetes.
const BURST: usize = 500;

/// Plans the next step for the pods that the ReplicaSet controls.
pub(super) fn plan(set: &ReplicaSet, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    let spec = set.spec.clone().unwrap_or_default();
    let mut active: Vec<Arc<Pod>> = pods.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    let (mut status, wake_at) = status_of(set, &active, now);
    let leaving = pods.iter().filter(|pod| pods::is_terminating(pod) && !pods::has_finished(pod));
    status.terminating_replicas = Some(count(leaving.count()));
    let wanted = if set.metadata.deletion_timestamp.is_some() {
        active.len()
    } else {
        usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0)
    };
    active.sort_by_cached_key(|pod| pods::deletion_rank(pod));
    let surplus = active.len().saturating_sub(wanted).min(BURST);
    let create = wanted.saturating_sub(active.len()).min(BURST);
    active.truncate(surplus);
    Plan { create, delete: active, status, wake_at }
}

fn status_of(set: &ReplicaSet, active: &[Arc<Pod>], now: Timestamp) -> (ReplicaSetStatus, Option<Timestamp>) {
    let spec = set.spec.clone().unwrap_or_default();
    let min_ready = spec.min_ready_seconds;
    let labels = spec.template.and_then(|template| template.metadata).and_then(|meta| meta.labels);
    let labels = labels.unwrap_or_default();
    let fully_labelled = |pod: &Pod| {
        labels.iter().all(|(key, value)| {
            pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|v| v == value)
        })
    };
    let ready = active.iter().filter(|pod| pods::is_ready(pod)).count();
    let available = active.iter().filter(|pod| pods::is_available(pod, min_ready, now)).count();
    let wake_at = pods::next_available(active.iter().map(AsRef::as_ref), min_ready, now);
    let status = ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: nonzero(active.iter().filter(|pod| fully_labelled(pod)).count()),
        ready_replicas: nonzero(ready),
        available_replicas: nonzero(available),
        observed_generation: set.metadata.generation,
        ..set.status.clone().unwrap_or_default()
    };
    (status, wake_at)
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Returns a number in the form of a status: absent if 0.
fn nonzero(n: usize) -> Option<i32> {
    (n > 0).then_some(count(n))
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
