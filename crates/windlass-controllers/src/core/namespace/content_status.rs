//! The progress of a namespace's deletion, and the conditions about the progress.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::conditions;

/// The result of a pass through a namespace.
#[derive(Debug, Default)]
pub(super) struct ContentStatus {
    /// The error of a failed discovery: some resources may be unknown.
    pub discovery_failure: Option<String>,
    /// The errors of failed requests.
    pub failures: Vec<String>,
    /// The number of remaining objects by `resource.group`.
    pub remaining: BTreeMap<String, usize>,
    /// The number of remaining objects by finalizer.
    pub finalizers: BTreeMap<String, usize>,
    /// The longest grace period of a remaining object.
    pub grace: Duration,
}

impl ContentStatus {
    /// Returns whether the namespace is empty and can be finalized.
    pub(super) fn is_empty(&self) -> bool {
        self.discovery_failure.is_none() && self.failures.is_empty() && self.remaining.is_empty()
    }

    /// Sets the conditions of the namespace.
    pub(super) fn set_conditions(&self, conditions: &mut Vec<NamespaceCondition>, now: &Time) {
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
                (
                    "ContentDeletionFailed",
                    format!("Failed to delete all resource types, {}", self.failures_message()),
                )
            }),
            ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        );
        say(
            "NamespaceContentRemaining",
            (!self.remaining.is_empty()).then(|| ("SomeResourcesRemain", self.remaining_message())),
            ("ContentRemoved", "All content successfully removed"),
        );
        say(
            "NamespaceFinalizersRemaining",
            (!self.finalizers.is_empty()).then(|| ("SomeFinalizersRemain", self.finalizers_message())),
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        );
    }

    fn failures_message(&self) -> String {
        format!("{} remaining: {}", self.failures.len(), self.failures.join(", "))
    }

    fn remaining_message(&self) -> String {
        let parts: Vec<String> = self
            .remaining
            .iter()
            .map(|(resource, count)| format!("{resource} has {count} resource instances"))
            .collect();
        format!("Some resources are remaining: {}", parts.join(", "))
    }

    fn finalizers_message(&self) -> String {
        let parts: Vec<String> = self
            .finalizers
            .iter()
            .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
            .collect();
        format!("Some content in the namespace has finalizers remaining: {}", parts.join(", "))
    }

    /// Returns when to try again: soon at first, later while finalizers or grace periods hold objects.
    pub(super) fn retry_after(&self, passes: u32) -> Duration {
        let back_off = Duration::from_millis(20).saturating_mul(1 << passes.min(8));
        back_off.min(Duration::from_secs(5)).max(if passes > 4 { self.grace / 4 } else { Duration::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn conditions_of(content: &ContentStatus) -> Vec<String> {
        let mut conditions = Vec::new();
        content.set_conditions(&mut conditions, &Time(Timestamp::UNIX_EPOCH));
        conditions
            .iter()
            .map(|c| format!("{}={} {}", c.type_, c.status, c.message.clone().unwrap_or_default()))
            .collect()
    }

    #[test]
    fn an_empty_namespace_may_go_and_says_so() {
        let content = ContentStatus::default();
        assert!(content.is_empty());
        assert!(conditions_of(&content).iter().all(|condition| condition.contains("=False All ")));
    }

    #[test]
    fn what_is_left_is_told_in_the_servers_words() {
        let content = ContentStatus {
            remaining: BTreeMap::from([("pods.".into(), 2)]),
            finalizers: BTreeMap::from([("example.com/hold".into(), 1)]),
            ..ContentStatus::default()
        };
        assert!(!content.is_empty());
        let said = conditions_of(&content);
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
        let content = ContentStatus { failures: vec!["boom".into()], ..ContentStatus::default() };
        assert!(!content.is_empty());
    }

    #[test]
    fn looking_again_slows_down_and_stays_bounded() {
        let content = ContentStatus::default();
        assert!(content.retry_after(0) < content.retry_after(3));
        assert!(content.retry_after(1000) <= Duration::from_secs(5));
    }
}
