//! The checks of a node for a pod.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Pod, Toleration};
use windlass_runtime::ObjectKey;

use super::cluster::{Cluster, NodeFacts, NodeRef, PodFacts};
use super::pod_affinity::RequiredAffinity;
use super::quantity::Milli;
use super::rejection::{Check, Rejection};
use super::requests::{PODS, Requests};
use super::spread::Spread;
use super::volumes::PodVolumes;
use crate::host_ports::{self, conflict};
use crate::node_fit::{matches_affinity, tolerates_cordon, untolerated_taint};

const CLAIM_IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

/// A pod that needs a node.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub key: &'a ObjectKey,
    pub pod: &'a Pod,
    pub facts: &'a PodFacts,
    pub volumes: &'a PodVolumes,
    /// False: pod affinity and topology spread are ignored.
    pub is_strict: bool,
}

impl<'a> Request<'a> {
    pub(super) fn tolerations(&self) -> &'a [Toleration] {
        self.pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
    }
}

/// The checks for one pod, in the order of kube-scheduler.
#[derive(Clone)]
pub(super) struct Filters<'a> {
    request: Request<'a>,
    cluster: &'a Cluster,
    affinity: Option<RequiredAffinity<'a>>,
    spread: Option<Spread<'a>>,
    /// The number of pods that use a claim of the pod that only one pod may use.
    conflicting: i64,
}

impl<'a> Filters<'a> {
    pub(super) fn new(request: Request<'a>, cluster: &'a Cluster) -> Self {
        let (affinity, spread) = if request.is_strict {
            let affinity = RequiredAffinity::new(request.facts, cluster);
            (Some(affinity), Some(Spread::required(request.pod, request.facts, cluster)))
        } else {
            (None, None)
        };
        let mut filters = Self { request, cluster, affinity, spread, conflicting: 0 };
        if request.volumes.are_exclusive() {
            filters.conflicting = cluster.pods().map(|pod| filters.conflicts(pod)).sum();
        }
        filters
    }

    /// Returns why a node cannot take the pod.
    pub(super) fn rejection(&self, node: NodeRef<'_>) -> Option<Rejection> {
        self.rejection_with(node.facts, &node.state.requested)
    }

    /// Works like [`rejection`](Self::rejection), for other requests of the node's pods.
    pub(super) fn rejection_with(&self, node: &NodeFacts, requested: &Requests) -> Option<Rejection> {
        self.node(node)
            .or_else(|| self.room(node, &self.with_nominated(node, requested)))
            .or_else(|| {
                let conflict = Rejection::resolvable(Check::ExclusiveClaims, CLAIM_IN_USE);
                (self.conflicting > 0).then_some(conflict)
            })
            .or_else(|| self.request.volumes.rejection(node))
            .or_else(|| self.spread.as_ref()?.rejection(node))
            .or_else(|| self.affinity.as_ref()?.rejection(node))
    }

    /// Removes a pod of a node from the counts of the checks, or adds the pod again.
    pub(super) fn change(&mut self, facts: &'a PodFacts, node: &'a NodeFacts, change: i64) {
        if let Some(affinity) = &mut self.affinity {
            affinity.add(&facts.class, node, change);
        }
        if let Some(spread) = &mut self.spread {
            spread.change(facts, node, change);
        }
        self.conflicting += change * self.conflicts(facts);
    }

    fn conflicts(&self, pod: &PodFacts) -> i64 {
        i64::from(self.request.volumes.conflict(&self.request.facts.class.namespace, pod))
    }

    /// Checks the name, the taints and the labels of a node.
    fn node(&self, node: &NodeFacts) -> Option<Rejection> {
        let rejected = |reason| Some(Rejection::unresolvable(Check::Node, reason));
        let (pod, tolerations) = (self.request.pod, self.request.tolerations());
        if node.is_cordoned && !tolerates_cordon(tolerations) {
            return rejected("node(s) were unschedulable");
        }
        if untolerated_taint(&node.taints, tolerations).is_some() {
            return rejected("node(s) had untolerated taint(s)");
        }
        if !matches_affinity(pod, &node.name, &node.labels) {
            return rejected("node(s) didn't match Pod's node affinity/selector");
        }
        None
    }

    /// Checks the ports and the resources of a node.
    fn room(&self, node: &NodeFacts, requested: &Requests) -> Option<Rejection> {
        let wanted = &self.request.facts.requests;
        if conflict(&wanted.ports, &requested.ports) {
            return Some(Rejection::resolvable(Check::Ports, host_ports::TAKEN));
        }
        let mut rejection = Rejection { check: Check::Resources, reasons: Vec::new(), is_resolvable: true };
        for (name, amount) in wanted.amounts.iter().filter(|(_, amount)| amount.0 > 0) {
            let allocatable = node.allocatable.get(name).copied().unwrap_or_default();
            if allocatable.0 >= requested.amount(name).0 + amount.0 {
                continue;
            }
            rejection.is_resolvable &= name == PODS || *amount <= allocatable;
            rejection.reasons.push(shortage(name));
        }
        (!rejection.reasons.is_empty()).then_some(rejection)
    }

    /// Adds the requests of pods with at least the same priority for which the node is reserved.
    fn with_nominated<'r>(&self, node: &NodeFacts, requested: &'r Requests) -> Cow<'r, Requests> {
        let Request { key, facts, .. } = self.request;
        let mut requested = Cow::Borrowed(requested);
        for (other, nominated) in self.cluster.nominated(&node.name) {
            if other != key && nominated.priority >= facts.priority {
                requested.to_mut().add(&nominated.requests);
            }
        }
        requested
    }
}

fn shortage(name: &str) -> Cow<'static, str> {
    match name {
        PODS => Cow::Borrowed("Too many pods"),
        "cpu" => Cow::Borrowed("Insufficient cpu"),
        "memory" => Cow::Borrowed("Insufficient memory"),
        other => Cow::Owned(format!("Insufficient {other}")),
    }
}

/// Returns how much of CPU and memory would be free on a node with the pod, in percent.
pub(super) fn free_percent(node: NodeRef<'_>, wanted: &Requests) -> i64 {
    let mut shares = Vec::with_capacity(2);
    for (index, name) in ["cpu", "memory"].into_iter().enumerate() {
        let allocatable = node.facts.allocatable.get(name).copied().unwrap_or_default();
        let used = Milli(node.state.requested.assumed[index].0 + wanted.assumed[index].0);
        if allocatable.0 > 0 {
            shares.push((allocatable.0 - used.0).max(0) * 100 / allocatable.0);
        }
    }
    let count = i128::try_from(shares.len()).unwrap_or(1).max(1);
    i64::try_from(shares.iter().sum::<i128>() / count).unwrap_or_default()
}
