//! The annotations of a Deployment's ReplicaSets.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube_core::ResourceExt;

/// The annotation with the revision of a rollout.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The earlier revisions of a ReplicaSet that a rollback made current again.
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The annotation with `spec.replicas` of the Deployment when the ReplicaSet was last scaled.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The annotation with the largest number of pods of the Deployment when the ReplicaSet was last scaled.
pub(super) const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";

/// The annotations of a Deployment that a ReplicaSet does not get.
const SKIPPED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
];
/// The greatest length of the annotation with the earlier revisions.
const MAX_HISTORY: usize = 2000;

/// Returns the annotations of a Deployment that the new ReplicaSet gets.
pub(super) fn copied(deployment: &Deployment) -> BTreeMap<String, String> {
    let mut annotations = deployment.annotations().clone();
    annotations.retain(|key, _| !SKIPPED.contains(&key.as_str()));
    annotations
}

/// Returns the annotations of a Deployment that the new ReplicaSet lacks or has with another value.
pub(super) fn missing(deployment: &Deployment, set: &ReplicaSet) -> BTreeMap<String, String> {
    let mut annotations = copied(deployment);
    annotations.retain(|key, value| set.annotations().get(key) != Some(value));
    annotations
}

/// Returns the earlier revisions of a ReplicaSet, with the present revision: the history when the ReplicaSet
/// gets a new revision.
pub(super) fn history(set: &ReplicaSet) -> Option<String> {
    let present = set.annotations().get(REVISION)?.clone();
    let before = set.annotations().get(REVISION_HISTORY).filter(|before| !before.is_empty());
    let Some(before) = before else { return Some(present) };
    let mut history = format!("{before},{present}");
    while history.len() > MAX_HISTORY {
        let (_, newer) = history.split_once(',')?;
        history = newer.to_owned();
    }
    Some(history)
}
