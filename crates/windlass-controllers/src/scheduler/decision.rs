//! Chooses a node for a pod, or explains why no node can take the pod.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use windlass_runtime::{ObjectKey, Result};

use super::cluster::Cluster;
use super::diagnosis::{Cause, Diagnosis};
use super::filters::{Filters, Request};
use super::preemption::{Preemption, preempt};
use super::rejection::Check;
use super::scores::best;

/// The result of an attempt to schedule a pod.
#[derive(Debug)]
pub(super) enum Decision {
    /// The name of the node.
    Bind(String),
    Wait(Wait),
}

/// No node can take the pod now.
#[derive(Debug)]
pub(super) struct Wait {
    pub message: String,
    /// The checks whose result must change before another attempt makes sense.
    pub checks: BTreeSet<Check>,
    pub room: Room,
}

/// The room that pods of a lower priority leave for the pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// No preemption helps. An earlier nomination ends.
    None,
    /// Preempted pods have not ended yet. The nomination stays.
    Awaited,
    /// These pods must end on the node.
    Victims { node: String, pods: Vec<ObjectKey> },
}

/// Chooses a node. `obstacle` is a property of the pod's volumes that rules out all nodes.
pub(super) fn decide(
    request: Request<'_>,
    cluster: &Cluster,
    obstacle: Option<String>,
    budgets: impl FnOnce() -> Result<Vec<Arc<PodDisruptionBudget>>>,
) -> Result<Decision> {
    let nodes = cluster.nodes().count();
    if let Some(reason) = obstacle {
        return wait(request, cluster, Diagnosis { nodes, cause: Cause::Pod(reason) }, budgets);
    }
    let filters = Filters::new(request, cluster);
    if let Some(node) = nominated_node(request).and_then(|name| cluster.node(name))
        && filters.rejection(node).is_none()
    {
        return Ok(Decision::Bind(node.facts.name.clone()));
    }
    let mut rejections = BTreeMap::new();
    let mut feasible = Vec::new();
    for node in cluster.nodes() {
        match filters.rejection(node) {
            Some(rejection) => drop(rejections.insert(node.facts.name.as_str(), rejection)),
            None => feasible.push(node),
        }
    }
    match best(&feasible, request, cluster) {
        Some(node) => Ok(Decision::Bind(node.to_owned())),
        None => wait(request, cluster, Diagnosis { nodes, cause: Cause::Nodes(rejections) }, budgets),
    }
}

fn wait(
    request: Request<'_>,
    cluster: &Cluster,
    diagnosis: Diagnosis<'_>,
    budgets: impl FnOnce() -> Result<Vec<Arc<PodDisruptionBudget>>>,
) -> Result<Decision> {
    let (reason, room) = match preempt(request, cluster, &diagnosis, budgets)? {
        Preemption::Useless(reason) => (Some(Cow::Owned(reason)), Room::None),
        Preemption::Awaited(reason) => (Some(Cow::Borrowed(reason)), Room::Awaited),
        Preemption::Victims { node, pods } => (None, Room::Victims { node, pods }),
    };
    let mut checks = diagnosis.checks();
    if diagnosis.nodes == 0 {
        checks.insert(Check::Node);
    }
    Ok(Decision::Wait(Wait { message: diagnosis.message(reason.as_deref()), checks, room }))
}

/// Returns the node that an earlier attempt has made room on.
pub(super) fn nominated_node(request: Request<'_>) -> Option<&str> {
    let status = request.pod.status.as_ref()?;
    status.nominated_node_name.as_deref().filter(|name| !name.is_empty())
}
