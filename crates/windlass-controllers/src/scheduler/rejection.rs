//! The reason why a node cannot take a pod.

use std::borrow::Cow;

/// The check that rejects a node. A change of the cluster makes pods schedulable by the checks that have rejected
/// the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Check {
    /// The name, the taints, the labels or the cordon of the node.
    Node,
    Ports,
    Resources,
    Volumes,
    /// A claim that only one pod may use.
    ExclusiveClaims,
    Spread,
    PodAffinity,
}

/// The reasons of one check, in the words of kube-scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub check: Check,
    pub reasons: Vec<Cow<'static, str>>,
    /// True if the end of other pods on the node can make room.
    pub is_resolvable: bool,
}

impl Rejection {
    /// A rejection that the end of other pods may resolve.
    pub(super) fn resolvable(check: Check, reason: &'static str) -> Self {
        Self { check, reasons: vec![Cow::Borrowed(reason)], is_resolvable: true }
    }

    /// A rejection that remains without other pods.
    pub(super) fn unresolvable(check: Check, reason: &'static str) -> Self {
        Self { is_resolvable: false, ..Self::resolvable(check, reason) }
    }
}
