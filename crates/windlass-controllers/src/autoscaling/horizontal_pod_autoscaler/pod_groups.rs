//! The pods of a target by the use of their metrics.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::ResourceExt;

use super::metrics::Values;
use crate::pods;

/// How long after the start of a pod the CPU usage may be that of the initialization.
const CPU_INITIALIZATION: SignedDuration = SignedDuration::from_mins(5);
/// A pod that became unready within this time after the start has never been ready.
const INITIAL_READINESS: SignedDuration = SignedDuration::from_secs(30);

/// The names of pods, by the use of their metrics.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PodGroups {
    /// How many pods have a metric that counts.
    pub ready: usize,
    /// The pods that may come to use something later.
    pub unready: BTreeSet<String>,
    /// The pods without a metric.
    pub missing: BTreeSet<String>,
    /// The pods that end.
    pub ignored: BTreeSet<String>,
}

impl PodGroups {
    /// Sorts the pods. `resource` is empty for metrics that are no resource.
    pub(super) fn of(pods: &[Arc<Pod>], values: &Values, resource: &str, now: Timestamp) -> Self {
        let mut groups = Self::default();
        for pod in pods {
            let name = pod.name_any();
            if pods::is_terminating(pod) || pods::phase(pod) == "Failed" {
                groups.ignored.insert(name);
            } else if pods::phase(pod) == "Pending" {
                groups.unready.insert(name);
            } else if !values.contains_key(&name) {
                groups.missing.insert(name);
            } else if resource == "cpu" && is_starting(pod, now) {
                groups.unready.insert(name);
            } else {
                groups.ready += 1;
            }
        }
        groups
    }
}

/// Returns whether the CPU usage of a pod does not count yet.
fn is_starting(pod: &Pod, now: Timestamp) -> bool {
    let status = pod.status.as_ref();
    let started = status.and_then(|status| status.start_time.as_ref()).map(|time| time.0);
    let ready = status
        .and_then(|status| status.conditions.as_ref())
        .and_then(|conditions| conditions.iter().find(|condition| condition.type_ == "Ready"));
    let (Some(started), Some(ready)) = (started, ready) else { return true };
    let is_unready = ready.status == "False";
    let later = |wait: SignedDuration| started.checked_add(wait).unwrap_or(Timestamp::MAX);
    if later(CPU_INITIALIZATION) > now {
        return is_unready;
    }
    let changed = ready.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0);
    is_unready && later(INITIAL_READINESS) > changed
}
