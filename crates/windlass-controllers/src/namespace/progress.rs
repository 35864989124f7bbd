//! How far the deletion of a namespace's content has come, told in the namespace's conditions.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::conditions;

/// What one sweep through a namespace found.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// Why the resources could not all be found out.
    pub discovery_failure: Option<String>,
    /// Requests that failed, as the server put it.
    pub failures: Vec<String>,
    /// Objects still there, by `resource.group`.
    pub remaining: BTreeMap<String, usize>,
    /// Finalizers that still hold objects, with the number of those objects.
    pub finalizers: BTreeMap<String, usize>,
    /// The longest grace period that an object still has.
    pub grace: Duration,
}

impl Sweep {
    /// Whether nothing is left and nothing stayed unknown: the namespace may go.
    pub(super) fn is_empty(&self) -> bool {
        self.discovery_failure.is_none() && self.failures.is_empty() && self.remaining.is_empty()
    }

    /// Writes what was found into the namespace's conditions.
    pub(super) fn describe(&self, conditions: &mut Vec<NamespaceCondition>, now: &Time) {
        let mut say = |kind: &str, problem: Option<(&str, String)>, (fine, all_well): (&str, &str)| {
            let status = if problem.is_some() { "True" } else { "False" };
            let (reason, message) = problem.unwrap_or((fine, all_well.to_owned()));
            let next = NamespaceCondition {
                type_: kind.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message),
                last_transition_time: None,
            };
            conditions::set(conditions, next, now);
        };
        say(
            "NamespaceDeletionDiscoveryFailure",
            self.discovery_failure.clone().map(|message| ("DiscoveryFailed", message)),
            ("ResourcesDiscovered", "All resources successfully discovered"),
        );
        say(
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
        );
        say(
            "NamespaceDeletionContentFailure",
            (!self.failures.is_empty()).then(|| {
                ("ContentDeletionFailed", format!("Failed to delete all resource types, {}", self.failed()))
            }),
            ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        );
        say(
            "NamespaceContentRemaining",
            (!self.remaining.is_empty()).then(|| ("SomeResourcesRemain", self.what_remains())),
            ("ContentRemoved", "All content successfully removed"),
        );
        say(
            "NamespaceFinalizersRemaining",
            (!self.finalizers.is_empty()).then(|| ("SomeFinalizersRemain", self.what_holds())),
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        );
    }

    fn failed(&self) -> String {
        format!("{} remaining: {}", self.failures.len(), self.failures.join(", "))
    }

    fn what_remains(&self) -> String {
        let parts: Vec<String> = self
            .remaining
            .iter()
            .map(|(resource, count)| format!("{resource} has {count} resource instances"))
            .collect();
        format!("Some resources are remaining: {}", parts.join(", "))
    }

    fn what_holds(&self) -> String {
        let parts: Vec<String> = self
            .finalizers
            .iter()
            .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
            .collect();
        format!("Some content in the namespace has finalizers remaining: {}", parts.join(", "))
    }

    /// When to look again: soon at first, slower while finalizers or grace periods hold the content.
    pub(super) fn look_again_after(&self, sweeps: u32) -> Duration {
        let back_off = Duration::from_millis(20).saturating_mul(1 << sweeps.min(8));
        back_off.min(Duration::from_secs(5)).max(if sweeps > 4 { self.grace / 4 } else { Duration::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn conditions_of(sweep: &Sweep) -> Vec<String> {
        let mut conditions = Vec::new();
        sweep.describe(&mut conditions, &Time(Timestamp::UNIX_EPOCH));
        conditions
            .iter()
            .map(|c| format!("{}={} {}", c.type_, c.status, c.message.clone().unwrap_or_default()))
            .collect()
    }

    #[test]
    fn an_empty_namespace_may_go_and_says_so() {
        let sweep = Sweep::default();
        assert!(sweep.is_empty());
        assert!(conditions_of(&sweep).iter().all(|condition| condition.contains("=False All ")));
    }

    #[test]
    fn what_is_left_is_told_in_the_servers_words() {
        let sweep = Sweep {
            remaining: BTreeMap::from([("pods.".into(), 2)]),
            finalizers: BTreeMap::from([("example.com/hold".into(), 1)]),
            ..Sweep::default()
        };
        assert!(!sweep.is_empty());
        let said = conditions_of(&sweep);
        assert_eq!(
            said[3],
            "NamespaceContentRemaining=True Some resources are remaining: pods. has 2 resource instances"
        );
        assert_eq!(
            said[4],
            "NamespaceFinalizersRemaining=True Some content in the namespace has finalizers remaining: \
             example.com/hold in 1 resource instances"
        );
    }

    #[test]
    fn a_failed_request_keeps_the_namespace() {
        let sweep = Sweep { failures: vec!["boom".into()], ..Sweep::default() };
        assert!(!sweep.is_empty());
    }

    #[test]
    fn looking_again_slows_down_and_stays_bounded() {
        let sweep = Sweep::default();
        assert!(sweep.look_again_after(0) < sweep.look_again_after(3));
        assert!(sweep.look_again_after(1000) <= Duration::from_secs(5));
    }
}
