//! Conditions of the built-in kinds: set by type, the transition time kept while the status stays the same.

use k8s_openapi::api::apps::v1::{DeploymentCondition, ReplicaSetCondition};
use k8s_openapi::api::core::v1::{NamespaceCondition, NodeCondition, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What the condition types of the built-in kinds have in common.
pub(crate) trait Condition {
    fn kind(&self) -> &str;
    fn status(&self) -> &str;
    fn transition(&mut self) -> &mut Option<Time>;
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

            fn transition(&mut self) -> &mut Option<Time> {
                &mut self.last_transition_time
            }
        }
    )+};
}
condition!(DeploymentCondition, NamespaceCondition, NodeCondition, PodCondition, ReplicaSetCondition);

/// Sets `next` in `conditions`: in the place of the one of its type, or at the end.
///
/// The time of the last transition is `now`, or the old one where the status did not change.
pub(crate) fn set<C: Condition>(conditions: &mut Vec<C>, mut next: C, now: &Time) {
    let place = conditions.iter_mut().find(|condition| condition.kind() == next.kind());
    let Some(old) = place else {
        *next.transition() = Some(now.clone());
        conditions.push(next);
        return;
    };
    let unchanged = old.status() == next.status();
    let since = old.transition().take().filter(|_| unchanged);
    *next.transition() = Some(since.unwrap_or_else(|| now.clone()));
    *old = next;
}

/// Whether the condition of type `kind` is `True`.
pub(crate) fn is_true<C: Condition>(conditions: Option<&Vec<C>>, kind: &str) -> bool {
    conditions.into_iter().flatten().any(|condition| condition.kind() == kind && condition.status() == "True")
}
