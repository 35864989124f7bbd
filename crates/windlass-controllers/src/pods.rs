//! Facts about pods that several controllers decide by, and pods made from templates.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::{ObjectMeta, Resource, ResourceExt};

use crate::{adoption, conditions};

/// Returns the phase, or an empty string if the pod has none.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Returns the names of the claims of a pod, and whether the claim belongs to the pod.
pub(crate) fn claims(pod: &Pod) -> impl Iterator<Item = (String, bool)> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| match &volume.persistent_volume_claim {
        Some(claim) => Some((claim.claim_name.clone(), false)),
        None => volume.ephemeral.is_some().then(|| (format!("{}-{}", pod.name_any(), volume.name), true)),
    })
}

/// The annotation with the value `false` on a pod or namespace whose simulated pods wait for nothing.
pub(crate) const STRICT: &str = "kubelet.windlass.dev/strict";

/// Returns whether the annotations say that simulated pods wait for nothing.
pub(crate) fn is_lenient(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(STRICT).is_some_and(|value| value == "false")
}

/// Returns whether the pod is being deleted.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Returns whether the containers of the pod have ended for good.
pub(crate) fn has_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Returns whether a pod counts as a replica: the pod has not finished and is not terminating.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_terminating(pod) && !has_finished(pod)
}

/// Returns whether the condition `Ready` is true.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    conditions::is_true(pod.status.as_ref().and_then(|status| status.conditions.as_ref()), "Ready")
}

/// Returns the time at which a pod became ready, or `None` for a pod that is not ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let found =
        pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == "Ready")?;
    (found.status == "True")
        .then(|| found.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0))
}

/// Returns the time at which a ready pod is available: `minReadySeconds` after the pod became ready. Returns
/// `None` for a pod that is not ready.
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: Option<i32>) -> Option<Timestamp> {
    let since = ready_since(pod)?;
    match min_ready_seconds.unwrap_or(0) {
        0 => Some(Timestamp::MIN),
        seconds => {
            Some(since.checked_add(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MAX))
        }
    }
}

/// Returns whether the pod has been ready for `minReadySeconds`.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: Option<i32>, now: Timestamp) -> bool {
    available_at(pod, min_ready_seconds).is_some_and(|at| at <= now)
}

/// Returns the next time after `now` at which a pod becomes available.
pub(crate) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready_seconds: Option<i32>,
    now: Timestamp,
) -> Option<Timestamp> {
    pods.into_iter().filter_map(|pod| available_at(pod, min_ready_seconds)).filter(|at| *at > now).min()
}

/// Returns a label of the pod.
pub(crate) fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Returns an annotation of the pod.
pub(crate) fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Returns a pod of the template that `owner` controls. The server completes the name.
pub(crate) fn from_template<K: Resource<DynamicType = ()>>(template: &PodTemplateSpec, owner: &K) -> Pod {
    let metadata = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", owner.name_any())),
            namespace: owner.namespace(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            owner_references: adoption::controller_reference(owner).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Returns the rank for deletion. First come pods that are not scheduled, not running or not ready; then pods
/// with a low deletion cost; then pods on nodes with many related pods, `on_node`; then the youngest pods.
pub(crate) fn deletion_rank(pod: &Pod, on_node: usize) -> impl Ord + use<> {
    let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let phase = match phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let cost: i32 = annotation(pod, "controller.kubernetes.io/pod-deletion-cost")
        .and_then(|cost| cost.parse().ok())
        .unwrap_or(0);
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let restarts = statuses.map(|status| status.restart_count).max();
    let age = (Reverse(ready_since(pod)), Reverse(restarts));
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let cost = (cost, Reverse(on_node));
    (placed, phase, is_ready(pod), cost, age, Reverse(created), pod.metadata.name.clone())
}
