//! The nodes and their pods, kept up to date with each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use k8s_openapi::jiff::Timestamp;
use windlass_runtime::ObjectKey;

use super::pod_class::{Labels, PodClass};
use super::requests::{Requests, ResourceList, resource_list};
use crate::pods;

/// The facts of a pod that decisions about other pods need.
#[derive(Clone, Debug)]
pub(super) struct PodFacts {
    pub uid: String,
    pub class: Arc<PodClass>,
    pub priority: i32,
    pub requests: Arc<Requests>,
    /// True if the pod object names the node; false if the scheduler has chosen the node.
    pub is_bound: bool,
    pub is_terminating: bool,
    /// True for a terminating pod that made room for a pod of a higher priority.
    pub is_preempted: bool,
    pub started: Option<Timestamp>,
    /// The names of the pod's claims.
    pub claims: Vec<String>,
}

impl PodFacts {
    pub(super) fn of(pod: &Pod) -> Self {
        let status = pod.status.as_ref();
        let is_terminating = pods::is_terminating(pod);
        let disruption =
            status.iter().flat_map(|status| status.conditions.iter().flatten()).find(|condition| {
                condition.type_ == "DisruptionTarget" && condition.reason.as_deref() == Some(PREEMPTED)
            });
        Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            class: Arc::new(PodClass::of(pod)),
            priority: priority(pod),
            requests: Arc::new(Requests::of(pod)),
            is_bound: pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()),
            is_terminating,
            is_preempted: is_terminating && disruption.is_some(),
            started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
            claims: pods::claims(pod).map(|(name, _)| name).collect(),
        }
    }
}

/// The reason of the condition `DisruptionTarget` of a preempted pod.
pub(super) const PREEMPTED: &str = "PreemptionByScheduler";

pub(super) fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default()
}

/// The facts of a node that decisions need.
#[derive(Clone, Debug)]
pub(super) struct NodeFacts {
    pub name: String,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    pub is_cordoned: bool,
    pub allocatable: ResourceList,
}

impl NodeFacts {
    pub(super) fn of(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: spec.and_then(|spec| spec.taints.clone()).unwrap_or_default(),
            is_cordoned: spec.is_some_and(|spec| spec.unschedulable == Some(true)),
            allocatable: resource_list(node.status.as_ref().and_then(|status| status.allocatable.as_ref())),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        // The times of taints do not matter.
        let taints = |node: &Self| -> Vec<(String, Option<String>, String)> {
            let taints = node.taints.iter();
            taints.map(|taint| (taint.key.clone(), taint.value.clone(), taint.effect.clone())).collect()
        };
        self.labels == other.labels
            && self.is_cordoned == other.is_cordoned
            && self.allocatable == other.allocatable
            && taints(self) == taints(other)
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

/// A node, the requests of the node's pods, and the pods.
#[derive(Debug, Default)]
pub(super) struct NodeState {
    /// `None` while pods name a node that does not exist.
    facts: Option<NodeFacts>,
    pub requested: Requests,
    pub pods: BTreeMap<ObjectKey, PodFacts>,
}

/// The number of pods of a class on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub all: i64,
    /// Without terminating pods.
    pub live: i64,
}

/// A node that exists, with the node's state.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'a> {
    pub facts: &'a NodeFacts,
    pub state: &'a NodeState,
}

/// All nodes, and all pods that are on a node and have not ended.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    nodes: BTreeMap<String, NodeState>,
    /// The nodes of the pods.
    placed: BTreeMap<ObjectKey, String>,
    classes: BTreeMap<Arc<PodClass>, BTreeMap<String, Count>>,
    /// Pods that wait for the end of preempted pods, with the nominated node.
    nominated: BTreeMap<ObjectKey, (String, PodFacts)>,
    namespaces: BTreeMap<String, Labels>,
}

impl Cluster {
    /// Inserts or replaces a node. Returns whether decisions may change.
    pub(super) fn set_node(&mut self, facts: NodeFacts) -> bool {
        let state = self.nodes.entry(facts.name.clone()).or_default();
        let is_changed = state.facts.as_ref().is_none_or(|known| !known.is_same(&facts));
        state.facts = Some(facts);
        is_changed
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        if let Some(state) = self.nodes.get_mut(name) {
            state.facts = None;
            self.drop_if_unused(name);
        }
    }

    /// Puts a pod on a node, and replaces the earlier state of the pod. Returns whether another node is no longer reserved for the pod.
    pub(super) fn place(&mut self, key: &ObjectKey, node: &str, facts: PodFacts) -> bool {
        self.remove(key);
        let nominated = self.nominated.remove(key);
        self.count(&facts, node, 1);
        let state = self.nodes.entry(node.to_owned()).or_default();
        state.requested.add(&facts.requests);
        state.pods.insert(key.clone(), facts);
        self.placed.insert(key.clone(), node.to_owned());
        nominated.is_some_and(|(nominated, _)| nominated != node)
    }

    /// Removes a pod from the pod's node. Returns whether the pod was on a node.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> bool {
        let Some(node) = self.placed.remove(key) else { return false };
        let removed = self.nodes.get_mut(&node).and_then(|state| {
            let facts = state.pods.remove(key)?;
            state.requested.subtract(&facts.requests);
            Some(facts)
        });
        if let Some(facts) = removed {
            self.count(&facts, &node, -1);
        }
        self.drop_if_unused(&node);
        true
    }

    fn count(&mut self, facts: &PodFacts, node: &str, change: i64) {
        let nodes = self.classes.entry(Arc::clone(&facts.class)).or_default();
        let count = nodes.entry(node.to_owned()).or_default();
        count.all += change;
        count.live += if facts.is_terminating { 0 } else { change };
        if count.all == 0 {
            nodes.remove(node);
        }
        if nodes.is_empty() {
            self.classes.remove(&facts.class);
        }
    }

    fn drop_if_unused(&mut self, node: &str) {
        if self.nodes.get(node).is_some_and(|state| state.facts.is_none() && state.pods.is_empty()) {
            self.nodes.remove(node);
        }
    }

    /// Returns the node and the facts of a pod.
    pub(super) fn pod(&self, key: &ObjectKey) -> Option<(&str, &PodFacts)> {
        let node = self.placed.get(key)?;
        Some((node, self.nodes.get(node)?.pods.get(key)?))
    }

    /// Reserves a node for a pod that waits for preempted pods. `None` ends the reservation. Returns whether another node was reserved
    /// for the pod.
    pub(super) fn nominate(&mut self, key: &ObjectKey, node: Option<(String, PodFacts)>) -> bool {
        let next = node.as_ref().map(|(node, _)| node.clone());
        let before = match node {
            Some(nomination) => self.nominated.insert(key.clone(), nomination),
            None => self.nominated.remove(key),
        };
        before.is_some_and(|(before, _)| Some(before) != next)
    }

    /// Returns the pods for which a node is reserved.
    pub(super) fn nominated(&self, node: &str) -> impl Iterator<Item = (&ObjectKey, &PodFacts)> {
        let all = self.nominated.iter();
        all.filter(move |(_, (nominated, _))| nominated == node).map(|(key, (_, facts))| (key, facts))
    }

    /// Sets or removes the labels of a namespace. Returns whether the labels have changed.
    pub(super) fn set_namespace(&mut self, name: &str, labels: Option<Labels>) -> bool {
        let before = match labels.clone() {
            Some(labels) => self.namespaces.insert(name.to_owned(), labels),
            None => self.namespaces.remove(name),
        };
        before != labels
    }

    pub(super) fn namespace_labels(&self, namespace: &str) -> Option<&Labels> {
        self.namespaces.get(namespace)
    }

    /// Returns the nodes that exist, by name.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        self.nodes.values().filter_map(|state| Some(NodeRef { facts: state.facts.as_ref()?, state }))
    }

    pub(super) fn node(&self, name: &str) -> Option<NodeRef<'_>> {
        let state = self.nodes.get(name)?;
        Some(NodeRef { facts: state.facts.as_ref()?, state })
    }

    /// Returns all pods on nodes.
    pub(super) fn pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.nodes.values().flat_map(|state| state.pods.values())
    }

    /// Returns the classes of all pods on nodes.
    pub(super) fn classes(&self) -> impl Iterator<Item = &Arc<PodClass>> {
        self.classes.keys()
    }

    /// Returns the existing nodes with pods of a class, and the number of pods.
    pub(super) fn nodes_of(&self, class: &PodClass) -> impl Iterator<Item = (&NodeFacts, Count)> {
        let counts = self.classes.get(class).into_iter().flatten();
        counts.filter_map(|(name, count)| Some((self.nodes.get(name)?.facts.as_ref()?, *count)))
    }

    /// Returns the number of pods of a class on each node with such pods, by the name of the node.
    pub(super) fn counts_of(&self, class: &PodClass) -> Option<&BTreeMap<String, Count>> {
        self.classes.get(class)
    }
}
