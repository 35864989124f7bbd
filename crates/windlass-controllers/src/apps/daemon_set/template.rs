//! New pods of a DaemonSet: tolerations, labels, and the node of each pod.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};
use kube_core::ResourceExt;

use crate::apps::controller_revision::POD_REVISION;
use crate::pods;

/// The annotation of a DaemonSet with the number of the template.
const GENERATION: &str = "deprecated.daemonset.template.generation";
/// The label of a pod with that number.
const POD_GENERATION: &str = "pod-template-generation";
const NODE_NAME: &str = "metadata.name";

const NO_EXECUTE: [&str; 2] = ["not-ready", "unreachable"];
const NO_SCHEDULE: [&str; 4] = ["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"];

/// Returns the pod for a node.
pub(super) fn pod(set: &DaemonSet, hash: &str, node: &str) -> Pod {
    let template = set.spec.clone().unwrap_or_default().template;
    let mut pod = pods::from_template(&template, set);
    if let Some(generation) = generation(set) {
        pod.labels_mut().insert(POD_GENERATION.to_owned(), generation.to_owned());
    }
    pod.labels_mut().insert(POD_REVISION.to_owned(), hash.to_owned());
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    let required = affinity.required_during_scheduling_ignored_during_execution.get_or_insert_default();
    *required = node_is(node);
    pod
}

/// Returns whether a pod is of the current template.
pub(super) fn is_current(set: &DaemonSet, hash: &str, pod: &Pod) -> bool {
    let same_generation = generation(set).is_some() && pods::label(pod, POD_GENERATION) == generation(set);
    same_generation || pods::label(pod, POD_REVISION) == Some(hash)
}

/// Returns the node that a pod is on, or is for.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|node| !node.is_empty()) {
        return Some(node);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let mut rules = terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let rule = rules.find(|rule| rule.key == NODE_NAME && rule.operator == "In")?;
    match rule.values.as_deref() {
        Some([node]) => Some(node),
        _ => None,
    }
}

/// Adds the tolerations of every DaemonSet pod.
pub(super) fn tolerate(spec: &mut PodSpec) {
    let of = |names: &[&str], effect: &str| -> Vec<Toleration> {
        let toleration = |name: &&str| Toleration {
            key: Some(format!("node.kubernetes.io/{name}")),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        names.iter().map(toleration).collect()
    };
    let mut wanted = of(&NO_EXECUTE, "NoExecute");
    wanted.extend(of(&NO_SCHEDULE, "NoSchedule"));
    if spec.host_network == Some(true) {
        wanted.extend(of(&["network-unavailable"], "NoSchedule"));
    }
    let list = spec.tolerations.get_or_insert_default();
    for next in wanted {
        let same = |old: &&mut Toleration| {
            (&old.key, &old.effect, &old.operator, &old.value)
                == (&next.key, &next.effect, &next.operator, &next.value)
        };
        match list.iter_mut().find(same) {
            Some(old) => *old = next,
            None => list.push(next),
        }
    }
}

fn node_is(node: &str) -> NodeSelector {
    let rule = NodeSelectorRequirement {
        key: NODE_NAME.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![rule]), match_expressions: None };
    NodeSelector { node_selector_terms: vec![term] }
}

fn generation(set: &DaemonSet) -> Option<&str> {
    let text = set.metadata.annotations.as_ref()?.get(GENERATION)?;
    text.parse::<i64>().is_ok().then_some(text.as_str())
}
