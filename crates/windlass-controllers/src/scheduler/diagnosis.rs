//! The message about a pod that fits on no node, in the words of kube-scheduler.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::rejection::{Check, Rejection};

/// The message without any node.
pub(super) const NO_NODES: &str = "no nodes available to schedule pods";

/// Why no node can take a pod.
#[derive(Debug)]
pub(super) struct Diagnosis<'a> {
    /// The number of nodes.
    pub nodes: usize,
    pub cause: Cause<'a>,
}

/// The pod itself, or each node.
#[derive(Debug)]
pub(super) enum Cause<'a> {
    /// No node was checked: a property of the pod's volumes rules out all nodes.
    Pod(String),
    /// The rejections by the name of the node.
    Nodes(BTreeMap<&'a str, Rejection>),
}

impl Diagnosis<'_> {
    /// Returns the checks that rejected the pod.
    pub(super) fn checks(&self) -> BTreeSet<Check> {
        match &self.cause {
            Cause::Pod(_) => BTreeSet::from([Check::Volumes]),
            Cause::Nodes(rejections) => rejections.values().map(|rejection| rejection.check).collect(),
        }
    }

    /// Returns the message, followed by the result of the attempt to preempt pods.
    pub(super) fn message(&self, preemption: Option<&str>) -> String {
        if self.nodes == 0 {
            return NO_NODES.to_owned();
        }
        let mut message = match &self.cause {
            Cause::Pod(reason) => format!("0/{} nodes are available: {reason}.", self.nodes),
            Cause::Nodes(rejections) => {
                let reasons = rejections.values().flat_map(|rejection| &rejection.reasons);
                unavailable(self.nodes, reasons.map(Cow::as_ref))
            }
        };
        match (&self.cause, preemption) {
            // kube-scheduler fails to preempt pods if no node was checked.
            (Cause::Pod(_), _) => message.push_str(" not found"),
            // The first words are those of dynamic resource allocation.
            (Cause::Nodes(_), Some(preemption)) => {
                message.push_str(" no new claims to deallocate, preemption: ");
                message.push_str(preemption);
            }
            (Cause::Nodes(_), None) => {}
        }
        message
    }
}

/// Returns the message with the number of each reason, sorted by text.
pub(super) fn unavailable<'a>(nodes: usize, reasons: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut texts: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.sort();
    format!("0/{nodes} nodes are available: {}.", texts.join(", "))
}
