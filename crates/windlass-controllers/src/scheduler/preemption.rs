//! The pods of a lower priority that must end so that a pod fits on a node.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::Timestamp;
use windlass_runtime::{ObjectKey, Result};

use super::cluster::{Cluster, NodeRef, PodFacts};
use super::decision::nominated_node;
use super::diagnosis::{Cause, Diagnosis, unavailable};
use super::filters::{Filters, Request};
use super::pod_class::Labels;
use super::rejection::Rejection;
use super::requests::Requests;
use crate::labels::selects;

const USELESS: &str = "Preemption is not helpful for scheduling";
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";
/// The number of nodes with victims after which no further node is tried.
const MAX_CANDIDATES: usize = 100;

/// The result of an attempt to make room.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Preemption {
    /// Why no pod is preempted.
    Useless(String),
    /// Why no further pod is preempted for now.
    Awaited(&'static str),
    Victims {
        node: String,
        pods: Vec<ObjectKey>,
    },
}

/// Looks for pods of a lower priority that can make room on a node that rejected the pod.
pub(super) fn preempt(
    request: Request<'_>,
    cluster: &Cluster,
    diagnosis: &Diagnosis<'_>,
    budgets: impl FnOnce() -> Result<Vec<Arc<PodDisruptionBudget>>>,
) -> Result<Preemption> {
    let policy = request.pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref());
    if policy == Some("Never") {
        return Ok(Preemption::Useless("not eligible due to preemptionPolicy=Never.".to_owned()));
    }
    let Cause::Nodes(rejections) = &diagnosis.cause else { return Ok(Preemption::Useless(String::new())) };
    if waits_for_victims(request, cluster, rejections) {
        return Ok(Preemption::Awaited("not eligible due to a terminating pod on the nominated node."));
    }
    let (filters, budgets) = (Filters::new(request, cluster), budgets()?);
    let mut reasons: Vec<String> = Vec::new();
    let mut candidates = Vec::new();
    for (name, rejection) in rejections {
        let Some(node) = cluster.node(name).filter(|_| rejection.is_resolvable) else { continue };
        match victims(request, node, &filters, &budgets) {
            Ok(found) => candidates.push(Candidate::new(node, found)),
            Err(failed) => reasons.extend(failed),
        }
        if candidates.len() >= MAX_CANDIDATES {
            break;
        }
    }
    let tried = rejections.values().filter(|rejection| rejection.is_resolvable).count();
    if let Some(Candidate { node, pods, .. }) = candidates.into_iter().min_by(|a, b| a.rank.cmp(&b.rank)) {
        return Ok(Preemption::Victims { node, pods });
    }
    reasons.extend((tried..diagnosis.nodes).map(|_| USELESS.to_owned()));
    Ok(Preemption::Useless(unavailable(diagnosis.nodes, reasons.iter().map(String::as_str))))
}

/// Returns whether pods that the pod has preempted still end on the nominated node.
fn waits_for_victims(
    request: Request<'_>,
    cluster: &Cluster,
    rejections: &BTreeMap<&str, Rejection>,
) -> bool {
    let Some(name) = nominated_node(request) else { return false };
    let is_hopeless = rejections.get(name).is_some_and(|rejection| !rejection.is_resolvable);
    let mut pods = cluster.node(name).into_iter().flat_map(|node| node.state.pods.values());
    !is_hopeless && pods.any(|pod| pod.priority < request.facts.priority && pod.is_preempted)
}

/// The victims on a node, the most important pod first.
struct Found<'a> {
    victims: Vec<(&'a ObjectKey, &'a PodFacts)>,
    /// How many victims disturb a PodDisruptionBudget.
    violations: usize,
}

/// Returns the pods that must end on a node.
///
/// # Errors
/// The reasons why the end of pods on the node does not help.
fn victims<'a>(
    request: Request<'a>,
    node: NodeRef<'a>,
    filters: &Filters<'a>,
    budgets: &[Arc<PodDisruptionBudget>],
) -> Result<Found<'a>, Vec<String>> {
    let lower = node.state.pods.iter().filter(|(_, pod)| pod.priority < request.facts.priority);
    let mut lower: Vec<_> = lower.collect();
    if lower.is_empty() {
        return Err(vec![NO_VICTIMS.to_owned()]);
    }
    lower.sort_by_key(|(key, pod)| importance(key, pod));
    let mut trial = Trial { filters: filters.clone(), node, requested: node.state.requested.clone() };
    for (_, pod) in &lower {
        trial.change(pod, -1);
    }
    if let Some(rejection) = trial.filters.rejection_with(node.facts, &trial.requested) {
        return Err(rejection.reasons.into_iter().map(std::borrow::Cow::into_owned).collect());
    }
    let (violating, harmless) = by_violation(lower, budgets);
    let mut found = Found { victims: Vec::new(), violations: 0 };
    for (key, pod) in violating {
        if !trial.keeps(pod) {
            found.violations += 1;
            found.victims.push((key, pod));
        }
    }
    for (key, pod) in harmless {
        if !trial.keeps(pod) {
            found.victims.push((key, pod));
        }
    }
    if found.victims.is_empty() {
        return Err(Vec::new());
    }
    found.victims.sort_by_key(|(key, pod)| importance(key, pod));
    Ok(found)
}

/// A node without some of the node's pods.
struct Trial<'a> {
    filters: Filters<'a>,
    node: NodeRef<'a>,
    requested: Requests,
}

impl<'a> Trial<'a> {
    fn change(&mut self, pod: &'a PodFacts, change: i64) {
        if change > 0 {
            self.requested.add(&pod.requests);
        } else {
            self.requested.subtract(&pod.requests);
        }
        self.filters.change(pod, self.node.facts, change);
    }

    /// Puts a pod back if the preemptor fits all the same. Returns whether the pod stays.
    fn keeps(&mut self, pod: &'a PodFacts) -> bool {
        self.change(pod, 1);
        let fits = self.filters.rejection_with(self.node.facts, &self.requested).is_none();
        if !fits {
            self.change(pod, -1);
        }
        fits
    }
}

/// Orders pods: a high priority first, then the pods that have run longest.
fn importance<'a>(key: &'a ObjectKey, pod: &PodFacts) -> impl Ord + use<'a> {
    (Reverse(pod.priority), pod.started.unwrap_or(Timestamp::MAX), key)
}

type Pods<'a> = Vec<(&'a ObjectKey, &'a PodFacts)>;

/// Splits pods into pods whose end disturbs a budget, and all other pods.
fn by_violation<'a>(pods: Pods<'a>, budgets: &[Arc<PodDisruptionBudget>]) -> (Pods<'a>, Pods<'a>) {
    let mut allowed: Vec<i32> = budgets
        .iter()
        .map(|budget| budget.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or(0))
        .collect();
    pods.into_iter().partition(|(key, pod)| {
        let mut violates = false;
        for (budget, allowed) in budgets.iter().zip(&mut allowed) {
            if !violates && covers(budget, key, &pod.class.namespace, &pod.class.labels) {
                *allowed -= 1;
                violates = *allowed < 0;
            }
        }
        violates
    })
}

/// Returns whether a budget counts the end of a pod. A budget with an empty selector counts no pod, as in kube-scheduler.
fn covers(budget: &PodDisruptionBudget, key: &ObjectKey, namespace: &str, labels: &Labels) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let evicted = budget.status.as_ref().and_then(|status| status.disrupted_pods.as_ref());
    budget.metadata.namespace.as_deref() == Some(namespace)
        && !labels.is_empty()
        && selector
            .is_some_and(|selector| *selector != LabelSelector::default() && selects(selector, Some(labels)))
        && evicted.is_none_or(|evicted| !evicted.contains_key(key.name()))
}

/// A node and the victims on the node. The smallest rank is best.
struct Candidate {
    node: String,
    pods: Vec<ObjectKey>,
    rank: Rank,
}

/// Few violations first; then a low highest priority, a low sum of priorities, few victims, and victims that have
/// started late.
type Rank = (usize, i32, i64, usize, Reverse<Timestamp>, String);

impl Candidate {
    fn new(node: NodeRef<'_>, found: Found<'_>) -> Self {
        let highest = found.victims.first().map_or(i32::MIN, |(_, pod)| pod.priority);
        // As in kube-scheduler, each victim counts, even with a negative priority.
        let each = found.victims.iter().map(|(_, pod)| i64::from(pod.priority) + i64::from(i32::MAX) + 1);
        let of_highest = found.victims.iter().filter(|(_, pod)| pod.priority == highest);
        let earliest = of_highest.filter_map(|(_, pod)| pod.started).min().unwrap_or(Timestamp::MAX);
        let name = node.facts.name.clone();
        let rank =
            (found.violations, highest, each.sum(), found.victims.len(), Reverse(earliest), name.clone());
        let pods = found.victims.into_iter().map(|(key, _)| key.clone()).collect();
        Self { node: name, pods, rank }
    }
}
