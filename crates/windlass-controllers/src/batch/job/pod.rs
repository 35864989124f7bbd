//! The pods of Jobs: finalizer, index, finish time, and creation.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, EnvVar, EnvVarSource, ObjectFieldSelector, Pod,
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::ResourceExt;

use crate::pods;

/// The finalizer that keeps a pod until the pod is counted.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The annotation and label with the completion index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The annotation with the number of failures of an index that count.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// The annotation with the number of failures of an index that the policy ignores.
const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The longest name to which the server can append a random suffix.
const MAX_PREFIX: usize = 58;

/// Returns whether the pod is still to be counted.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == TRACKING)
}

/// Returns the completion index of a pod.
pub(super) fn index(pod: &Pod) -> Option<i32> {
    pods::annotation(pod, INDEX)?.parse().ok().filter(|index| *index >= 0)
}

/// Returns the earlier failures of the pod's index: counted failures, and ignored failures.
pub(super) fn earlier_failures(pod: &Pod) -> (i32, i32) {
    let count = |key| pods::annotation(pod, key).and_then(|text| text.parse().ok()).unwrap_or(0).max(0);
    (count(FAILURES), count(IGNORED_FAILURES))
}

/// Returns whether a pod counts as failed. A terminating pod counts, unless pods are replaced only after a
/// failure.
pub(super) fn is_failed(pod: &Pod, job: &Job) -> bool {
    match pods::phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        _ => pods::is_terminating(pod) && !replaces_only_failed(job),
    }
}

/// Returns whether a terminating pod is replaced only after the pod's end.
pub(super) fn replaces_only_failed(job: &Job) -> bool {
    job.spec.as_ref().is_some_and(|spec| {
        spec.pod_replacement_policy.as_deref() == Some("Failed") || spec.pod_failure_policy.is_some()
    })
}

/// Returns the finish time of a pod: the end of the last container, or else the best time in the status.
pub(super) fn finished_at(pod: &Pod) -> Timestamp {
    let ends = |pod: &Pod| -> Option<Timestamp> {
        let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
        let end = |state: &ContainerStatus| {
            Some(state.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0)
        };
        statuses.iter().map(end).collect::<Option<Vec<_>>>()?.into_iter().max()
    };
    let unready = || {
        let conditions = pod.status.as_ref()?.conditions.as_ref()?;
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
        ready.last_transition_time.as_ref().filter(|_| ready.status == "False").map(|time| time.0)
    };
    let deleted = || {
        let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
        pod.metadata.deletion_timestamp.as_ref()?.0.checked_sub(grace).ok()
    };
    let created = || pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    ends(pod).or_else(unready).or_else(deleted).or_else(created).unwrap_or(Timestamp::MIN)
}

/// Returns a new pod of the Job, for an index of an indexed Job. `failures` are the earlier failures of the
/// index, if failures are counted.
pub(super) fn new(job: &Job, index: Option<i32>, failures: Option<(i32, i32)>) -> Pod {
    let template = job.spec.clone().unwrap_or_default().template;
    let mut pod = pods::from_template(&template, job);
    pod.finalizers_mut().retain(|finalizer| finalizer != TRACKING);
    pod.finalizers_mut().push(TRACKING.to_owned());
    let Some(index) = index else { return pod };
    let name = job.name_any();
    let suffix = format!("-{index}-");
    let mut end = name.len().min(MAX_PREFIX.saturating_sub(suffix.len()));
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    pod.metadata.generate_name = Some(format!("{}{suffix}", &name[..end]));
    pod.annotations_mut().insert(INDEX.to_owned(), index.to_string());
    pod.labels_mut().insert(INDEX.to_owned(), index.to_string());
    if let Some((counted, ignored)) = failures {
        pod.annotations_mut().insert(FAILURES.to_owned(), counted.to_string());
        if ignored > 0 {
            pod.annotations_mut().insert(IGNORED_FAILURES.to_owned(), ignored.to_string());
        }
    }
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{name}-{index}"));
    spec.init_containers.iter_mut().flatten().chain(&mut spec.containers).for_each(tell_index);
    pod
}

/// Adds the environment variable with the index to a container that does not set the variable.
fn tell_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), api_version: None };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
        ..EnvVar::default()
    });
}

/// Returns the indexes of pods.
pub(super) fn indexes<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeSet<i32> {
    pods.into_iter().filter_map(index).collect()
}
