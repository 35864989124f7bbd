//! The pods to create and delete for a ReplicaSet, and the next status.

use std::collections::BTreeMap;
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

/// Plans the next step for the pods that the ReplicaSet controls. `related` are the pods of all ReplicaSets with the same
/// controller, for a smaller set: of two pods, the pod with more related pods on the node goes first.
pub(super) fn plan(set: &ReplicaSet, pods: &[Arc<Pod>], related: &[Arc<Pod>], now: Timestamp) -> Plan {
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
    let surplus = active.len().saturating_sub(wanted).min(BURST);
    if surplus > 0 {
        let on_node = count_by_node(related);
        let rank = |pod: &Pod| pods::deletion_rank(pod, on_node.get(node_of(pod)).copied().unwrap_or(0));
        active.sort_by_cached_key(|pod| rank(pod));
    }
    let create = wanted.saturating_sub(active.len()).min(BURST);
    active.truncate(surplus);
    Plan { create, delete: active, status, wake_at }
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

fn count_by_node(pods: &[Arc<Pod>]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pods::is_active(pod)) {
        *counts.entry(node_of(pod)).or_default() += 1;
    }
    counts
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
mod tests;
