//! Affinity and anti-affinity between pods, by the topology of nodes.

use std::collections::BTreeMap;

use super::cluster::{Cluster, NodeFacts, PodFacts};
use super::pod_class::{Labels, PodClass, Term};
use super::rejection::{Check, Rejection};

const AFFINITY: &str = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const OTHERS_ANTI_AFFINITY: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Numbers by topology: the key and the value of a label of nodes.
type ByTopology<'a> = BTreeMap<(&'a str, &'a str), i64>;

/// The pods that matter for the required rules of a pod and for the required rules of other pods against the pod.
#[derive(Clone)]
pub(super) struct RequiredAffinity<'a> {
    class: &'a PodClass,
    namespace_labels: Option<&'a Labels>,
    cluster: &'a Cluster,
    /// Pods that all terms of the pod's affinity select, by the topology of each term.
    wanted: ByTopology<'a>,
    /// Pods that a term of the pod's anti-affinity selects.
    unwanted: ByTopology<'a>,
    /// Pods with a term of anti-affinity that selects the pod.
    repelling: ByTopology<'a>,
}

impl<'a> RequiredAffinity<'a> {
    pub(super) fn new(pod: &'a PodFacts, cluster: &'a Cluster) -> Self {
        let class = &*pod.class;
        let mut state = Self {
            class,
            namespace_labels: cluster.namespace_labels(&class.namespace),
            cluster,
            wanted: ByTopology::new(),
            unwanted: ByTopology::new(),
            repelling: ByTopology::new(),
        };
        let has_rules = !class.affinity.is_empty() || !class.anti_affinity.is_empty();
        for other in cluster.classes() {
            if has_rules || !other.anti_affinity.is_empty() {
                let relation = state.relation(other);
                if !relation.is_empty() {
                    cluster.nodes_of(other).for_each(|(node, count)| state.count(&relation, node, count.all));
                }
            }
        }
        state
    }

    /// Adds `change` pods like `other` on a node.
    pub(super) fn add(&mut self, other: &'a PodClass, node: &'a NodeFacts, change: i64) {
        let relation = self.relation(other);
        self.count(&relation, node, change);
    }

    fn relation(&self, other: &'a PodClass) -> Relation<'a> {
        let other_labels = self.cluster.namespace_labels(&other.namespace);
        let selects = |term: &&Term| term.selects(other, other_labels);
        let wanted = self.class.affinity.iter().all(|term| selects(&term));
        Relation {
            wanted: self.class.affinity.iter().filter(|_| wanted).collect(),
            unwanted: self.class.anti_affinity.iter().filter(selects).collect(),
            repelling: other
                .anti_affinity
                .iter()
                .filter(|term| term.selects(self.class, self.namespace_labels))
                .collect(),
        }
    }

    fn count(&mut self, relation: &Relation<'a>, node: &'a NodeFacts, change: i64) {
        add_all(&mut self.wanted, &relation.wanted, node, change);
        add_all(&mut self.unwanted, &relation.unwanted, node, change);
        add_all(&mut self.repelling, &relation.repelling, node, change);
    }

    /// Returns why the node is not allowed.
    pub(super) fn rejection(&self, node: &NodeFacts) -> Option<Rejection> {
        if !self.has_wanted(node) {
            return Some(Rejection::unresolvable(Check::PodAffinity, AFFINITY));
        }
        let has = |counts: &ByTopology<'_>, key: &str| {
            let value = node.label(key);
            value.and_then(|value| counts.get(&(key, value))).is_some_and(|count| *count > 0)
        };
        if self.class.anti_affinity.iter().any(|term| has(&self.unwanted, &term.topology_key)) {
            return Some(Rejection::resolvable(Check::PodAffinity, ANTI_AFFINITY));
        }
        of_node(&self.repelling, node)
            .any(|count| count > 0)
            .then(|| Rejection::resolvable(Check::PodAffinity, OTHERS_ANTI_AFFINITY))
    }

    fn has_wanted(&self, node: &NodeFacts) -> bool {
        let mut are_there = true;
        for term in &self.class.affinity {
            let Some(value) = node.label(&term.topology_key) else { return false };
            let count = self.wanted.get(&(term.topology_key.as_str(), value)).copied().unwrap_or_default();
            are_there &= count > 0;
        }
        are_there || (self.wanted.values().all(|count| *count <= 0) && self.wants_itself())
    }

    /// Returns whether the pod may be the first of pods that want to be together.
    fn wants_itself(&self) -> bool {
        self.class.affinity.iter().all(|term| term.selects(self.class, self.namespace_labels))
    }
}

/// The terms that concern pods of another class.
struct Relation<'a> {
    wanted: Vec<&'a Term>,
    unwanted: Vec<&'a Term>,
    repelling: Vec<&'a Term>,
}

impl Relation<'_> {
    fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.unwanted.is_empty() && self.repelling.is_empty()
    }
}

fn add_all<'a>(counts: &mut ByTopology<'a>, terms: &[&'a Term], node: &'a NodeFacts, change: i64) {
    for term in terms {
        let key = term.topology_key.as_str();
        if let Some(value) = node.label(key) {
            *counts.entry((key, value)).or_default() += change;
        }
    }
}

/// Returns the numbers of a node's labels. A node has few labels, and `counts` may have an entry for each node.
fn of_node(counts: &ByTopology<'_>, node: &NodeFacts) -> impl Iterator<Item = i64> {
    node.labels.iter().filter_map(|(key, value)| counts.get(&(key.as_str(), value.as_str())).copied())
}

/// The preferred rules of a pod, and of other pods for the pod, as weights by topology.
pub(super) struct PreferredAffinity<'a>(ByTopology<'a>);

impl<'a> PreferredAffinity<'a> {
    pub(super) fn new(pod: &'a PodFacts, cluster: &'a Cluster) -> Self {
        let class = &*pod.class;
        let own_labels = cluster.namespace_labels(&class.namespace);
        let mut weights = ByTopology::new();
        for other in cluster.classes() {
            let other_labels = cluster.namespace_labels(&other.namespace);
            let own = class.preferred.iter().filter(|(_, term)| term.selects(other, other_labels));
            let others = other.weighted_terms().filter(|(_, term)| term.selects(class, own_labels));
            for (weight, term) in own.map(|(weight, term)| (*weight, term)).chain(others) {
                for (node, count) in cluster.nodes_of(other) {
                    add_all(&mut weights, &[term], node, weight.saturating_mul(count.all));
                }
            }
        }
        Self(weights)
    }

    /// Returns whether no rule prefers a node.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the sum of the weights for a node.
    pub(super) fn weight(&self, node: &NodeFacts) -> i64 {
        of_node(&self.0, node).sum()
    }
}
