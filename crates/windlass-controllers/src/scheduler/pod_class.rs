//! The properties that pods have in common with regard to pod affinity and topology spread.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, Pod, PodAffinityTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::labels::selects;

pub(super) type Labels = BTreeMap<String, String>;

/// The weight of a required pod affinity of another pod in the scores, as in kube-scheduler.
const REQUIRED_WEIGHT: i64 = 1;

/// The namespace, labels and terms of pod affinity of a pod.
///
/// The pods of a workload are usually of the same class. The scheduler matches selectors with classes, and
/// counts the pods of each class on each node.
#[derive(Debug)]
pub(super) struct PodClass {
    pub namespace: String,
    pub labels: Labels,
    /// The required terms of `podAffinity`.
    pub affinity: Vec<Term>,
    /// The required terms of `podAntiAffinity`.
    pub anti_affinity: Vec<Term>,
    /// The preferred terms of both; terms of `podAntiAffinity` have a negative weight.
    pub preferred: Vec<(i64, Term)>,
    /// The JSON of the terms. Equal texts have equal terms.
    text: String,
}

/// A term of pod affinity.
#[derive(Debug)]
pub(super) struct Term {
    pub topology_key: String,
    /// `None` selects no pod.
    selector: Option<LabelSelector>,
    namespaces: Vec<String>,
    namespace_selector: Option<LabelSelector>,
}

impl PodClass {
    pub(super) fn of(pod: &Pod) -> Self {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
        let Some(Affinity { pod_affinity, pod_anti_affinity, .. }) = affinity else {
            return Self::plain(namespace, labels);
        };
        let term = |term: &PodAffinityTerm| Term::of(term, &namespace, &labels);
        let mut class = Self::plain(namespace.clone(), labels.clone());
        if let Some(rules) = pod_affinity {
            let required = &rules.required_during_scheduling_ignored_during_execution;
            class.affinity = required.iter().flatten().map(term).collect();
            let preferred = rules.preferred_during_scheduling_ignored_during_execution.iter().flatten();
            class.preferred = preferred.map(|p| (i64::from(p.weight), term(&p.pod_affinity_term))).collect();
        }
        if let Some(rules) = pod_anti_affinity {
            let required = &rules.required_during_scheduling_ignored_during_execution;
            class.anti_affinity = required.iter().flatten().map(term).collect();
            let preferred = rules.preferred_during_scheduling_ignored_during_execution.iter().flatten();
            class.preferred.extend(preferred.map(|p| (-i64::from(p.weight), term(&p.pod_affinity_term))));
        }
        class.text = serde_json::to_string(&(pod_affinity, pod_anti_affinity)).unwrap_or_default();
        class
    }

    fn plain(namespace: String, labels: Labels) -> Self {
        Self {
            namespace,
            labels,
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
            preferred: Vec::new(),
            text: String::new(),
        }
    }

    /// Returns the weighted terms that attract or repel other pods in the scores.
    pub(super) fn weighted_terms(&self) -> impl Iterator<Item = (i64, &Term)> {
        let required = self.affinity.iter().map(|term| (REQUIRED_WEIGHT, term));
        required.chain(self.preferred.iter().map(|(weight, term)| (*weight, term)))
    }

    fn identity(&self) -> (&str, &Labels, &str) {
        (&self.namespace, &self.labels, &self.text)
    }
}

impl PartialEq for PodClass {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for PodClass {}

impl PartialOrd for PodClass {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PodClass {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl Term {
    /// Returns the term of a pod with these labels in this namespace.
    fn of(term: &PodAffinityTerm, namespace: &str, labels: &Labels) -> Self {
        let mut selector = term.label_selector.clone();
        if let Some(selector) = &mut selector {
            require_labels(selector, term.match_label_keys.as_deref(), labels, "In");
            require_labels(selector, term.mismatch_label_keys.as_deref(), labels, "NotIn");
        }
        let mut namespaces = term.namespaces.clone().unwrap_or_default();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace.to_owned());
        }
        Self {
            topology_key: term.topology_key.clone(),
            selector,
            namespaces,
            namespace_selector: term.namespace_selector.clone(),
        }
    }

    /// Returns whether the term selects pods of a class. `namespace_labels` are the labels of the namespace of
    /// the class.
    pub(super) fn selects(&self, class: &PodClass, namespace_labels: Option<&Labels>) -> bool {
        let in_namespace = self.namespaces.contains(&class.namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| selects(selector, namespace_labels));
        in_namespace && self.selector.as_ref().is_some_and(|selector| selects(selector, Some(&class.labels)))
    }
}

/// Adds a requirement to a selector for each key that is among the labels of the pod.
pub(super) fn require_labels(
    selector: &mut LabelSelector,
    keys: Option<&[String]>,
    labels: &Labels,
    operator: &str,
) {
    for key in keys.unwrap_or_default() {
        let Some(value) = labels.get(key) else { continue };
        selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
            key: key.clone(),
            operator: operator.to_owned(),
            values: Some(vec![value.clone()]),
        });
    }
}
