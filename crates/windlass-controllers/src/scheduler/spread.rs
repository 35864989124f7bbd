//! Topology spread constraints.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::cluster::{Cluster, NodeFacts, PodFacts};
use super::pod_class::{PodClass, require_labels};
use super::rejection::{Check, Rejection};
use crate::labels::selects;
use crate::node_fit::{matches_affinity, untolerated_taint};

const UNEVEN: &str = "node(s) didn't match pod topology spread constraints";
const NO_LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// The effect of a constraint that no node satisfies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unsatisfiable {
    DoNotSchedule,
    ScheduleAnyway,
}

/// A constraint, and the matching pods of each domain.
#[derive(Clone)]
struct Constraint<'a> {
    key: &'a str,
    max_skew: i64,
    min_domains: usize,
    /// `None` selects no pod.
    selector: Option<LabelSelector>,
    selects_pod: bool,
    honors_affinity: bool,
    honors_taints: bool,
    /// The matching pods by value of the label `key`, also for domains without a matching pod.
    domains: BTreeMap<&'a str, i64>,
    minimum: i64,
}

/// The constraints of a pod.
#[derive(Clone)]
pub(super) struct Spread<'a> {
    class: &'a PodClass,
    constraints: Vec<Constraint<'a>>,
    /// The constraints that count the pods of a node, by the name of the node.
    counted: Arc<BTreeMap<&'a str, Vec<usize>>>,
}

impl<'a> Spread<'a> {
    /// Returns the constraints that forbid nodes.
    pub(super) fn required(pod: &'a Pod, facts: &'a PodFacts, cluster: &'a Cluster) -> Self {
        Self::new(pod, facts, cluster, Unsatisfiable::DoNotSchedule)
    }

    fn new(pod: &'a Pod, facts: &'a PodFacts, cluster: &'a Cluster, when: Unsatisfiable) -> Self {
        let class = &*facts.class;
        let declared = pod.spec.iter().flat_map(|spec| spec.topology_spread_constraints.iter().flatten());
        let constraints = declared.filter(|declared| unsatisfiable(declared) == when);
        let constraints = constraints.map(|declared| Constraint::new(declared, class)).collect();
        let mut spread = Self { class, constraints, counted: Arc::default() };
        if !spread.constraints.is_empty() {
            spread.count(pod, cluster);
        }
        spread
    }

    /// Counts the pods of the cluster.
    fn count(&mut self, pod: &Pod, cluster: &'a Cluster) {
        let counted =
            cluster.nodes().map(|node| (node.facts.name.as_str(), self.counted_on(pod, node.facts)));
        self.counted = Arc::new(counted.collect());
        for node in cluster.nodes() {
            self.add(node.facts, 0, |_| true);
        }
        for class in cluster.classes() {
            let own = self.class;
            if self.constraints.iter().any(|constraint| constraint.selects(class, own)) {
                let nodes = cluster.nodes_of(class);
                nodes.for_each(|(node, count)| self.add(node, count.live, |c| c.selects(class, own)));
            }
        }
        self.constraints.iter_mut().for_each(Constraint::find_minimum);
    }

    /// Returns the constraints that count the pods of a node: none if the node has not the labels of all
    /// constraints.
    fn counted_on(&self, pod: &Pod, node: &NodeFacts) -> Vec<usize> {
        if self.constraints.iter().any(|constraint| node.label(constraint.key).is_none()) {
            return Vec::new();
        }
        let counts = |(_, constraint): &(usize, &Constraint<'_>)| constraint.counts(pod, node);
        self.constraints.iter().enumerate().filter(counts).map(|(index, _)| index).collect()
    }

    /// Adds to the domains of a node, for the constraints that count the node and that `selects` accepts.
    fn add(&mut self, node: &'a NodeFacts, change: i64, selects: impl Fn(&Constraint<'a>) -> bool) {
        let counted = Arc::clone(&self.counted);
        for index in counted.get(node.name.as_str()).into_iter().flatten() {
            let constraint = &mut self.constraints[*index];
            if let Some(value) = node.label(constraint.key).filter(|_| selects(constraint)) {
                *constraint.domains.entry(value).or_default() += change;
            }
        }
    }

    /// Removes a pod of a node from the counts, or adds the pod again.
    pub(super) fn change(&mut self, facts: &PodFacts, node: &'a NodeFacts, change: i64) {
        if self.constraints.is_empty() || facts.is_terminating {
            return;
        }
        let own = self.class;
        self.add(node, change, |constraint| constraint.selects(&facts.class, own));
        self.constraints.iter_mut().for_each(Constraint::find_minimum);
    }

    /// Returns why the node is not allowed.
    pub(super) fn rejection(&self, node: &NodeFacts) -> Option<Rejection> {
        for constraint in &self.constraints {
            let Some(value) = node.label(constraint.key) else {
                return Some(Rejection::unresolvable(Check::Spread, NO_LABEL));
            };
            let count = constraint.domains.get(value).copied().unwrap_or_default();
            if count + i64::from(constraint.selects_pod) - constraint.minimum > constraint.max_skew {
                return Some(Rejection::resolvable(Check::Spread, UNEVEN));
            }
        }
        None
    }
}

impl<'a> Constraint<'a> {
    fn new(declared: &'a TopologySpreadConstraint, class: &PodClass) -> Self {
        let mut selector = declared.label_selector.clone();
        if let Some(selector) = &mut selector {
            require_labels(selector, declared.match_label_keys.as_deref(), &class.labels, "In");
        }
        let selects_pod = selector.as_ref().is_some_and(|selector| selects(selector, Some(&class.labels)));
        Self {
            key: &declared.topology_key,
            max_skew: declared.max_skew.into(),
            min_domains: declared.min_domains.and_then(|least| usize::try_from(least).ok()).unwrap_or(1),
            selector,
            selects_pod,
            honors_affinity: declared.node_affinity_policy.as_deref() != Some("Ignore"),
            honors_taints: declared.node_taints_policy.as_deref() == Some("Honor"),
            domains: BTreeMap::new(),
            minimum: 0,
        }
    }

    /// Returns whether the pods of a node count.
    fn counts(&self, pod: &Pod, node: &NodeFacts) -> bool {
        let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
        (!self.honors_affinity || matches_affinity(pod, &node.name, &node.labels))
            && (!self.honors_taints || untolerated_taint(&node.taints, tolerations).is_none())
    }

    /// Returns whether pods of a class count for a pod of the class `own`. An empty selector counts no pod, as
    /// in kube-scheduler.
    fn selects(&self, class: &PodClass, own: &PodClass) -> bool {
        let selector = self.selector.as_ref().filter(|selector| !is_empty(selector));
        class.namespace == own.namespace
            && selector.is_some_and(|selector| selects(selector, Some(&class.labels)))
    }

    fn find_minimum(&mut self) {
        self.minimum = if self.domains.len() < self.min_domains {
            0
        } else {
            self.domains.values().copied().min().unwrap_or_default()
        };
    }
}

fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

fn unsatisfiable(constraint: &TopologySpreadConstraint) -> Unsatisfiable {
    match constraint.when_unsatisfiable.as_str() {
        "ScheduleAnyway" => Unsatisfiable::ScheduleAnyway,
        _ => Unsatisfiable::DoNotSchedule,
    }
}

/// The preference for nodes in domains with few matching pods.
pub(super) struct PreferredSpread<'a> {
    spread: Spread<'a>,
    /// The weight of each constraint: larger for more domains, as in kube-scheduler.
    weights: Vec<f64>,
}

impl<'a> PreferredSpread<'a> {
    /// Returns the constraints that only prefer nodes.
    pub(super) fn new(pod: &'a Pod, facts: &'a PodFacts, cluster: &'a Cluster) -> Self {
        let spread = Spread::new(pod, facts, cluster, Unsatisfiable::ScheduleAnyway);
        let domains = spread.constraints.iter().map(|constraint| constraint.domains.len());
        let weights = domains.map(|count| f64::from(u32::try_from(count + 2).unwrap_or(u32::MAX)).ln());
        let weights = weights.collect();
        Self { spread, weights }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spread.constraints.is_empty()
    }

    /// Returns the load of the node's domains. `None` for a node without the labels.
    pub(super) fn load(&self, node: &NodeFacts) -> Option<f64> {
        let mut load = 0.0;
        for (constraint, weight) in self.spread.constraints.iter().zip(&self.weights) {
            let count = constraint.domains.get(node.label(constraint.key)?).copied().unwrap_or_default();
            let number = |count: i64| f64::from(i32::try_from(count).unwrap_or(i32::MAX));
            load += number(count) * weight + number(constraint.max_skew - 1);
        }
        Some(load)
    }
}
