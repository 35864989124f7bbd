//! The status of a PodDisruptionBudget.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::ResourceExt;

use crate::{percent, pods};

/// The time after which an evicted pod that still exists counts as not evicted.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// The numbers that the owners of the pods ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scale {
    /// The sum of the replicas of all controllers of the pods.
    pub expected: i32,
    /// Some pods have no controller.
    pub unmanaged: bool,
}

/// The status to write, and the Events to record.
#[derive(Debug)]
pub(super) struct Plan {
    pub status: PodDisruptionBudgetStatus,
    /// Pods that were evicted and are still there.
    pub not_deleted: Vec<Arc<Pod>>,
    pub unmanaged: bool,
    /// When an evicted pod counts as not evicted.
    pub wake_at: Option<Timestamp>,
}

/// Returns whether the status depends on the scale of the pods' owners, and not only on the pods.
pub(super) fn needs_scale(budget: &PodDisruptionBudget) -> bool {
    let spec = budget.spec.clone().unwrap_or_default();
    spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
}

/// Plans the status for the pods that the budget selects. `scale` is `None` if the budget needs no scale.
pub(super) fn plan(
    budget: &PodDisruptionBudget,
    found: &[Arc<Pod>],
    scale: Option<Scale>,
    now: Timestamp,
) -> Plan {
    let spec = budget.spec.clone().unwrap_or_default();
    let old = budget.status.clone().unwrap_or_default();
    let count = i32::try_from(found.len()).unwrap_or(i32::MAX);
    let scaled = scale.unwrap_or_default();
    let (expected, desired) = match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            let unavailable = percent::scaled(most, scaled.expected, true);
            (scaled.expected, (scaled.expected - unavailable).max(0))
        }
        (None, Some(IntOrString::Int(least))) => (count, *least),
        (None, Some(least)) => (scaled.expected, percent::scaled(least, scaled.expected, true)),
        (None, None) => (0, 0),
    };
    let (disrupted, not_deleted, wake_at) = disrupted(found, old.disrupted_pods.unwrap_or_default(), now);
    let healthy = found.iter().filter(|pod| {
        !pods::is_terminating(pod) && !disrupted.contains_key(&pod.name_any()) && pods::is_ready(pod)
    });
    let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
    let status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: budget.metadata.generation,
        conditions: old.conditions,
    };
    let (holds, reason) = if allowed > 0 { (true, "SufficientPods") } else { (false, "InsufficientPods") };
    let status = with_condition(status, holds, reason, "", now);
    Plan { status, not_deleted, unmanaged: scaled.unmanaged, wake_at }
}

/// Returns a status without an allowance, because the allowance cannot be computed.
pub(super) fn failed(
    budget: &PodDisruptionBudget,
    message: &str,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone().unwrap_or_default();
    status.disruptions_allowed = Some(0);
    with_condition(status, false, "SyncFailed", message, now)
}

fn with_condition(
    mut status: PodDisruptionBudgetStatus,
    holds: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let list = status.conditions.get_or_insert_default();
    let state = if holds { "True" } else { "False" };
    let kind = "DisruptionAllowed";
    let old = list.iter().find(|condition| condition.type_ == kind && condition.status == state);
    let next = Condition {
        type_: kind.to_owned(),
        status: state.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: status.observed_generation,
        last_transition_time: old.map_or(Time(now), |old| old.last_transition_time.clone()),
    };
    match list.iter_mut().find(|condition| condition.type_ == kind) {
        Some(condition) => *condition = next,
        None => list.push(next),
    }
    status
}

type Disrupted = (BTreeMap<String, Time>, Vec<Arc<Pod>>, Option<Timestamp>);

/// Returns the evicted pods that still exist, the pods that were not deleted in time, and the time at which
/// the next pod is late.
fn disrupted(found: &[Arc<Pod>], known: BTreeMap<String, Time>, now: Timestamp) -> Disrupted {
    let (mut waiting, mut late, mut wake_at) = (BTreeMap::new(), Vec::new(), None);
    for pod in found.iter().filter(|pod| !pods::is_terminating(pod)) {
        let name = pod.name_any();
        let Some(evicted) = known.get(&name) else { continue };
        let due = evicted.0.checked_add(DELETION_TIMEOUT).unwrap_or(Timestamp::MAX);
        if due < now {
            late.push(Arc::clone(pod));
            continue;
        }
        wake_at = wake_at.into_iter().chain([due]).min();
        waiting.insert(name, evicted.clone());
    }
    (waiting, late, wake_at)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn budget(spec: Value, status: Value) -> PodDisruptionBudget {
        let metadata = json!({"name": "b", "namespace": "n", "generation": 2});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    fn pods(states: &[&str]) -> Vec<Arc<Pod>> {
        let pod = |(n, state): (usize, &&str)| {
            let conditions = json!([{"type": "Ready", "status": state}]);
            let pod = json!({"metadata": {"name": format!("p{n}")}, "status": {"conditions": conditions}});
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        states.iter().enumerate().map(pod).collect()
    }

    fn numbers(spec: Value, states: &[&str], expected: i32) -> [Option<i32>; 4] {
        let scale = Scale { expected, unmanaged: false };
        let budget = budget(spec, json!({}));
        let status = plan(&budget, &pods(states), Some(scale), Timestamp::UNIX_EPOCH).status;
        [status.current_healthy, status.desired_healthy, status.expected_pods, status.disruptions_allowed]
    }

    #[test]
    fn as_many_pods_may_go_as_the_budget_leaves() {
        let all = ["True", "True", "True"];
        assert_eq!(numbers(json!({"minAvailable": 2}), &all, 0), [3, 2, 3, 1].map(Some));
        assert_eq!(
            numbers(json!({"minAvailable": 2}), &["True", "False", "True"], 0),
            [2, 2, 3, 0].map(Some)
        );
        assert_eq!(numbers(json!({"minAvailable": "50%"}), &all, 3), [3, 2, 3, 1].map(Some));
        assert_eq!(numbers(json!({"maxUnavailable": 1}), &all, 3), [3, 2, 3, 1].map(Some));
        assert_eq!(numbers(json!({"maxUnavailable": "34%"}), &all, 3), [3, 1, 3, 2].map(Some));
        assert_eq!(numbers(json!({"maxUnavailable": 1}), &[], 0), [0, 0, 0, 0].map(Some));
    }

    #[test]
    fn an_evicted_pod_does_not_count_until_it_is_late() {
        let status = json!({
            "disruptedPods": {"p0": "2026-01-01T00:00:00Z", "gone": "2026-01-01T00:00:00Z"},
            "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
        });
        let budget = budget(json!({"minAvailable": 1}), status);
        let at = |time: &str| plan(&budget, &pods(&["True", "True"]), None, time.parse().unwrap());
        let soon = at("2026-01-01T00:01:00Z");
        assert_eq!((soon.status.current_healthy, soon.status.disrupted_pods.unwrap().len()), (Some(1), 1));
        assert_eq!(soon.wake_at, Some("2026-01-01T00:02:00Z".parse().unwrap()));
        let late = at("2026-01-01T00:03:00Z");
        assert_eq!((late.status.current_healthy, late.not_deleted.len()), (Some(2), 1));
    }
}
