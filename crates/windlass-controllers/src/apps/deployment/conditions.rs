//! The conditions of a Deployment, in order of change.

use k8s_openapi::api::apps::v1::DeploymentCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The reason of the condition `Progressing` of a paused rollout.
pub(super) const PAUSED: &str = "DeploymentPaused";
/// The reason of a rollout without progress.
pub(super) const LATE: &str = "ProgressDeadlineExceeded";
/// The reason of a rollout whose ReplicaSet cannot be created.
pub(super) const SET_NOT_CREATED: &str = "ReplicaSetCreateError";

/// Returns a condition without times.
pub(super) fn new(kind: &str, status: &str, reason: &str, message: String) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        ..DeploymentCondition::default()
    }
}

/// Replaces the condition of the type of `next`. A condition with a new status or reason becomes the last
/// condition.
///
/// `lastTransitionTime` becomes `now` if the status changes, and is kept otherwise.
pub(super) fn set(conditions: &mut Vec<DeploymentCondition>, mut next: DeploymentCondition, now: &Time) {
    let place = conditions.iter().position(|condition| condition.type_ == next.type_);
    let old = place.map(|place| &conditions[place]);
    let since = old.filter(|old| old.status == next.status).and_then(|old| old.last_transition_time.clone());
    let is_same = old.is_some_and(|old| old.status == next.status && old.reason == next.reason);
    next.last_transition_time = since.or_else(|| Some(now.clone()));
    match place {
        Some(place) if is_same => conditions[place] = next,
        _ => {
            conditions.retain(|condition| condition.type_ != next.type_);
            conditions.push(next);
        }
    }
}

/// Sets the condition of type `kind`, or removes the condition. A condition with the present status and reason changes nothing.
pub(super) fn set_or_remove(
    conditions: &mut Vec<DeploymentCondition>,
    kind: &str,
    next: Option<DeploymentCondition>,
) {
    let place = conditions.iter().position(|condition| condition.type_ == kind);
    let is_same = |old: &DeploymentCondition| {
        next.as_ref().is_some_and(|next| old.status == next.status && old.reason == next.reason)
    };
    if place.is_some_and(|place| is_same(&conditions[place])) {
        return;
    }
    let old = place.map(|place| conditions.remove(place));
    conditions.extend(next.map(|next| {
        let old = old.filter(|old| old.status == next.status);
        let since = old.map_or_else(|| next.last_transition_time.clone(), |old| old.last_transition_time);
        DeploymentCondition { last_transition_time: since, ..next }
    }));
}
