//! Chooses a node for a pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::quantity::Milli;
use crate::host_ports::{self, HostPort, conflict, host_ports};
use crate::node_fit::{matches_affinity, tolerates_cordon, untolerated_taint};

/// Amounts by resource name (`cpu`, `memory`, `pods`, …).
pub(super) type ResourceList = BTreeMap<String, Milli>;

/// The resources that pods request of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    pub amounts: ResourceList,
    pub ports: Vec<HostPort>,
}

/// A node, and the requests of the node's pods.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub node: &'a Node,
    pub requested: Requests,
}

/// Chooses the node with the fewest pods. Among equal nodes, the first by name wins.
///
/// # Errors
/// No node fits: the reason in the words of kube-scheduler.
pub(super) fn choose(pod: &Pod, candidates: &[Candidate<'_>]) -> Result<String, String> {
    let wanted = requests(pod);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<(i128, &str)> = None;
    for candidate in candidates {
        let Some(name) = candidate.node.metadata.name.as_deref() else { continue };
        let reasons = rejections(pod, &wanted, candidate);
        if reasons.is_empty() {
            let room = candidate.requested.amounts.get("pods").map_or(0, |requested| requested.0);
            if best.is_none_or(|(least, first)| (room, name) < (least, first)) {
                best = Some((room, name));
            }
        }
        for reason in reasons {
            *counts.entry(reason).or_default() += 1;
        }
    }
    best.map(|(_, name)| name.to_owned()).ok_or_else(|| explain(candidates.len(), &counts))
}

fn explain(nodes: usize, counts: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let reasons: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}

/// Returns the reasons why the pod does not fit on the node. Empty if the pod fits.
fn rejections(pod: &Pod, wanted: &Requests, candidate: &Candidate<'_>) -> Vec<String> {
    let node = candidate.node;
    let spec = pod.spec.clone().unwrap_or_default();
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let node_spec = node.spec.clone().unwrap_or_default();
    if node_spec.unschedulable == Some(true) && !tolerates_cordon(tolerations) {
        return vec!["node(s) were unschedulable".to_owned()];
    }
    if let Some(name) = spec.node_name.as_deref().filter(|name| node.metadata.name.as_deref() != Some(name)) {
        return vec![format!("node(s) didn't match the requested node name {name}")];
    }
    if let Some(taint) = untolerated_taint(node_spec.taints.as_deref().unwrap_or_default(), tolerations) {
        let value = taint.value.as_deref().unwrap_or_default();
        return vec![format!("node(s) had untolerated taint(s) {{{}: {value}}}", taint.key)];
    }
    if !matches_affinity(pod, node) {
        return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
    }
    if conflict(&wanted.ports, &candidate.requested.ports) {
        return vec![host_ports::TAKEN.to_owned()];
    }
    shortages(&wanted.amounts, candidate)
}

fn shortages(wanted: &ResourceList, candidate: &Candidate<'_>) -> Vec<String> {
    let allocatable =
        resource_list(candidate.node.status.as_ref().and_then(|status| status.allocatable.as_ref()));
    let nothing = Milli::default();
    wanted
        .iter()
        .filter(|(_, amount)| amount.0 > 0)
        .filter(|(name, amount)| {
            let requested = candidate.requested.amounts.get(*name).unwrap_or(&nothing);
            allocatable.get(*name).unwrap_or(&nothing).0 < requested.0 + amount.0
        })
        .map(
            |(name, _)| {
                if name == "pods" { "Too many pods".to_owned() } else { format!("Insufficient {name}") }
            },
        )
        .collect()
}

/// Returns the resources that a pod requests of a node.
pub(super) fn requests(pod: &Pod) -> Requests {
    Requests { amounts: amounts(pod), ports: host_ports(pod) }
}

/// Returns the resources that a pod requests: the sum of the containers, or the largest init container if
/// larger; and one pod.
fn amounts(pod: &Pod) -> ResourceList {
    let mut total = ResourceList::from([("pods".to_owned(), Milli(1000))]);
    let Some(spec) = &pod.spec else { return total };
    let of = |resources: &Option<k8s_openapi::api::core::v1::ResourceRequirements>| {
        resource_list(resources.as_ref().and_then(|resources| resources.requests.as_ref()))
    };
    for container in &spec.containers {
        add(&mut total, &of(&container.resources));
    }
    for container in spec.init_containers.iter().flatten() {
        for (name, amount) in of(&container.resources) {
            let entry = total.entry(name).or_default();
            *entry = (*entry).max(amount);
        }
    }
    total
}

/// Adds `more` to `total`.
pub(super) fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, amount) in more {
        total.entry(name.clone()).or_default().0 += amount.0;
    }
}

fn resource_list(quantities: Option<&BTreeMap<String, Quantity>>) -> ResourceList {
    quantities
        .into_iter()
        .flatten()
        .filter_map(|(name, quantity)| Some((name.clone(), quantity.0.parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests;
