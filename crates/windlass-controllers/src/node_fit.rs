//! The conditions for a pod on a node: taints, labels and affinity.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration,
};

/// Returns whether a pod may run on a node that is cordoned.
pub(crate) fn tolerates_cordon(tolerations: &[Toleration]) -> bool {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    tolerations.iter().any(|toleration| tolerates(toleration, &cordon))
}

/// Returns the first taint that keeps the pod off the node.
pub(crate) fn untolerated_taint<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints
        .iter()
        .filter(|taint| taint.effect != "PreferNoSchedule")
        .find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// Returns whether a toleration covers a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let any = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
    let effect = any(&toleration.effect) || toleration.effect.as_deref() == Some(&taint.effect);
    let exists = toleration.operator.as_deref() == Some("Exists");
    let key = (any(&toleration.key) && exists) || toleration.key.as_deref() == Some(&taint.key);
    let value = exists
        || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
    effect && key && value
}

/// Returns whether a node with this name and these labels is one that the pod asks for.
pub(crate) fn matches_affinity(pod: &Pod, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let Some(spec) = &pod.spec else { return true };
    let selected =
        spec.node_selector.iter().flatten().all(|(key, value)| labels.get(key).is_some_and(|v| v == value));
    let required = node_affinity(pod)
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected && required.is_none_or(|selector| matches_selector(selector, name, labels))
}

/// Returns whether a node matches a term of a selector.
pub(crate) fn matches_selector(
    selector: &NodeSelector,
    name: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    selector.node_selector_terms.iter().any(|term| matches_term(term, labels, name))
}

/// Returns the sum of the weights of the preferred terms that a node matches.
pub(crate) fn preference(pod: &Pod, name: &str, labels: &BTreeMap<String, String>) -> i64 {
    let preferred = node_affinity(pod)
        .into_iter()
        .flat_map(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten());
    preferred
        .filter(|term| matches_term(&term.preference, labels, name))
        .map(|term| i64::from(term.weight))
        .sum()
}

fn node_affinity(pod: &Pod) -> Option<&NodeAffinity> {
    pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()
}

/// Returns the number of taints that ask for other pods if possible.
pub(crate) fn avoiding_taints(taints: &[Taint], tolerations: &[Toleration]) -> usize {
    taints
        .iter()
        .filter(|taint| taint.effect == "PreferNoSchedule")
        .filter(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
        .count()
}

fn matches_term(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>, name: &str) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    (!expressions.is_empty() || !fields.is_empty())
        && expressions.iter().all(|rule| matches_rule(rule, labels.get(&rule.key).map(String::as_str)))
        && fields.iter().all(|rule| rule.key == "metadata.name" && matches_rule(rule, Some(name)))
}

fn matches_rule(rule: &NodeSelectorRequirement, actual: Option<&str>) -> bool {
    let values = rule.values.as_deref().unwrap_or_default();
    let listed = || actual.is_some_and(|actual| values.iter().any(|value| value == actual));
    let compare = |holds: fn(i64, i64) -> bool| {
        let (Some(actual), Some(bound)) =
            (actual.and_then(|a| a.parse().ok()), values.first().and_then(|v| v.parse().ok()))
        else {
            return false;
        };
        holds(actual, bound)
    };
    match rule.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        "Gt" => compare(|actual, bound| actual > bound),
        "Lt" => compare(|actual, bound| actual < bound),
        _ => false,
    }
}
