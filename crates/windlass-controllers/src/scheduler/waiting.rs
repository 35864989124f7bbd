//! The pods that fit on no node, and the changes that may help.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use tokio::time::Instant;
use windlass_runtime::ObjectKey;

use super::rejection::Check;
use crate::pods::is_lenient;

/// The first back-off between two attempts. kube-scheduler begins with 1 s.
const FIRST_BACK_OFF: Duration = Duration::from_millis(10);
/// The longest back-off, as in kube-scheduler.
const MAX_BACK_OFF: Duration = Duration::from_secs(10);

/// A change of the cluster that may make pods schedulable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A node has appeared, or has other labels, taints or resources.
    Node,
    /// A pod on a node has ended, is terminating, or requests less.
    PodGone,
    /// A pod was placed on a node, or has other labels.
    PodPlaced,
    /// A claim, a volume or a class has changed.
    Volume,
    /// A namespace has other labels.
    Namespace,
}

impl Change {
    /// Returns whether a check may have another result after the change.
    fn concerns(self, check: Check) -> bool {
        match self {
            Self::Node => true,
            Self::PodGone => !matches!(check, Check::Node | Check::Volumes),
            Self::PodPlaced => matches!(check, Check::Spread | Check::PodAffinity),
            Self::Volume => matches!(check, Check::Volumes | Check::ExclusiveClaims),
            Self::Namespace => check == Check::PodAffinity,
        }
    }
}

/// The properties of a pod at the last attempt that decide about the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    is_lenient: bool,
}

impl Seen {
    pub(super) fn of(pod: &Pod) -> Self {
        Self {
            generation: pod.metadata.generation,
            labels: pod.metadata.labels.clone(),
            is_lenient: is_lenient(pod.annotations()),
        }
    }
}

/// A pod that fits on no node.
#[derive(Debug)]
struct Waiting {
    priority: i32,
    seen: Seen,
    /// True if the pod is in the queue.
    is_queued: bool,
    checks: BTreeSet<Check>,
    attempts: u32,
    last_attempt: Instant,
}

/// The pods that wait for a change of the cluster.
#[derive(Debug, Default)]
pub(super) struct WaitingPods(BTreeMap<ObjectKey, Waiting>);

/// The time until a pod is tried again, and the pod's priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retry {
    pub after: Duration,
    pub priority: i32,
}

impl WaitingPods {
    /// Records an attempt that found no node.
    pub(super) fn insert(
        &mut self,
        key: &ObjectKey,
        priority: i32,
        seen: Seen,
        checks: BTreeSet<Check>,
        now: Instant,
    ) {
        let attempts = self.0.get(key).map_or(0, |waiting| waiting.attempts).saturating_add(1);
        let waiting = Waiting { priority, seen, is_queued: false, checks, attempts, last_attempt: now };
        self.0.insert(key.clone(), waiting);
    }

    /// Records that a node was chosen for the pod. The pod keeps the number of attempts until the pod is on the node.
    pub(super) fn pause(&mut self, key: &ObjectKey) {
        if let Some(waiting) = self.0.get_mut(key) {
            waiting.checks.clear();
            waiting.seen = Seen::default();
        }
    }

    /// Returns whether an attempt has failed for the pod as the pod is now.
    pub(super) fn is_known(&self, key: &ObjectKey, now: &Seen) -> bool {
        self.0.get(key).is_some_and(|pod| pod.seen == *now)
    }

    /// Returns the waiting pods of a namespace, with each pod's priority.
    pub(super) fn of_namespace(&self, namespace: &str) -> Vec<(ObjectKey, i32)> {
        let pods = self.0.iter().filter(|(key, _)| key.namespace() == Some(namespace));
        pods.map(|(key, pod)| (key.clone(), pod.priority)).collect()
    }

    /// Removes a pod that has a node or is gone.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    /// Returns the pods that a change may help and that are not queued yet, with the rest of each pod's back-off.
    pub(super) fn take_helped_by(&mut self, change: Change, now: Instant) -> Vec<(ObjectKey, Retry)> {
        let mut helped = Vec::new();
        for (key, pod) in &mut self.0 {
            if pod.is_queued || !pod.checks.iter().any(|check| change.concerns(*check)) {
                continue;
            }
            pod.is_queued = true;
            let passed = now.saturating_duration_since(pod.last_attempt);
            let after = back_off(pod.attempts).saturating_sub(passed);
            helped.push((key.clone(), Retry { after, priority: pod.priority }));
        }
        helped
    }
}

/// Returns the time between an attempt and the next: 10 ms, doubled with each attempt, up to 10 s.
fn back_off(attempts: u32) -> Duration {
    let doubled = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_BACK_OFF.saturating_mul(doubled).min(MAX_BACK_OFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    fn waiting(pods: &[(&str, Check)]) -> WaitingPods {
        let mut waiting = WaitingPods::default();
        for (name, check) in pods {
            waiting.insert(&key(name), 7, Seen::default(), BTreeSet::from([*check]), Instant::now());
        }
        waiting
    }

    #[test]
    fn only_changes_that_may_help_wake_a_pod() {
        let pods = [("full", Check::Resources), ("apart", Check::PodAffinity), ("claim", Check::Volumes)];
        let names = |change| {
            let woken = waiting(&pods).take_helped_by(change, Instant::now());
            woken.into_iter().map(|(key, _)| key.name().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(Change::Node), ["apart", "claim", "full"]);
        assert_eq!(names(Change::PodGone), ["apart", "full"]);
        assert_eq!(names(Change::PodPlaced), ["apart"]);
        assert_eq!(names(Change::Volume), ["claim"]);
        assert_eq!(names(Change::Namespace), ["apart"]);
    }

    #[test]
    fn a_pod_is_queued_once_until_the_next_attempt() {
        let mut pods = waiting(&[("p", Check::Node)]);
        let now = Instant::now();
        assert_eq!(pods.take_helped_by(Change::Node, now).len(), 1);
        assert!(pods.take_helped_by(Change::Node, now).is_empty());
        pods.insert(&key("p"), 0, Seen::default(), BTreeSet::from([Check::Node]), now);
        assert_eq!(pods.take_helped_by(Change::Node, now).len(), 1);
        pods.remove(&key("p"));
        assert!(pods.take_helped_by(Change::Node, now).is_empty());
    }

    #[test]
    fn a_pod_that_fails_again_and_again_waits_longer() {
        let (mut pods, start) = (WaitingPods::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..12 {
            pods.insert(&key("p"), 7, Seen::default(), BTreeSet::from([Check::Node]), start);
            let retry = pods.take_helped_by(Change::Node, start)[0].1;
            assert_eq!(retry.priority, 7);
            waits.push(retry.after.as_millis());
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_000, 10_000]);
        pods.insert(&key("p"), 7, Seen::default(), BTreeSet::from([Check::Node]), start);
        let later = start + Duration::from_secs(9);
        assert_eq!(pods.take_helped_by(Change::Node, later)[0].1.after, Duration::from_secs(1));
    }
}
