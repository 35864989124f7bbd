//! Conditions of the built-in kinds.

use k8s_openapi::api::apps::v1::ReplicaSetCondition;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use k8s_openapi::api::core::v1::{NamespaceCondition, NodeCondition, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The common part of the condition types of the built-in kinds.
pub(crate) trait Condition {
    fn kind(&self) -> &str;
    fn status(&self) -> &str;
    fn transition_time(&mut self) -> &mut Option<Time>;
}

macro_rules! condition {
    ($($ty:ty),+) => {$(
        impl Condition for $ty {
            fn kind(&self) -> &str {
                &self.type_
            }

            fn status(&self) -> &str {
                &self.status
            }

            fn transition_time(&mut self) -> &mut Option<Time> {
                &mut self.last_transition_time
            }
        }
    )+};
}
condition!(
    HorizontalPodAutoscalerCondition,
    NamespaceCondition,
    NodeCondition,
    PodCondition,
    ReplicaSetCondition
);

/// Replaces the condition of the type of `next`, or appends it.
///
/// `lastTransitionTime` becomes `now` if the status changes, and is kept otherwise.
pub(crate) fn set<C: Condition>(conditions: &mut Vec<C>, mut next: C, now: &Time) {
    let place = conditions.iter_mut().find(|condition| condition.kind() == next.kind());
    let Some(old) = place else {
        *next.transition_time() = Some(now.clone());
        conditions.push(next);
        return;
    };
    let unchanged = old.status() == next.status();
    let since = old.transition_time().take().filter(|_| unchanged);
    *next.transition_time() = Some(since.unwrap_or_else(|| now.clone()));
    *old = next;
}

/// Returns whether the condition of type `kind` is `True`.
pub(crate) fn is_true<C: Condition>(conditions: Option<&Vec<C>>, kind: &str) -> bool {
    conditions.into_iter().flatten().any(|condition| condition.kind() == kind && condition.status() == "True")
}
