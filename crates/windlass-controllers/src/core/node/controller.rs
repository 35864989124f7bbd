//! Watches the heartbeats of nodes, and sets the taints of nodes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;
use kube_client::api::{Api, Patch};
use kube_core::ResourceExt;
use serde_json::json;
use windlass_runtime::{
    Action, BoxError, Context, Controller, Delta, Enqueuer, Error, EventHandler, HandlerContext, ObjectKey,
    Reconciler, Result, Watch, kind,
};

use super::heartbeats::{Heartbeats, deadline, lost, ready};
use super::taints::taints;
use crate::component::{self, KUBE_CONTROLLER_MANAGER};
use crate::{conditions, pods, wake};

/// The component that reports Events about nodes, as in kube-controller-manager.
const COMPONENT: &str = "node-controller";
const LEASES: &str = "kube-node-lease";

struct NodeLifecycle {
    heartbeats: Mutex<Heartbeats>,
    /// `None`: no node is ever lost.
    grace: Option<SignedDuration>,
}

/// Returns the controller. A node without a heartbeat for `grace` is lost; with `None`, never.
pub(crate) fn controller(grace: Option<Duration>) -> Controller {
    let grace = grace.map(|grace| SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX));
    let lifecycle = NodeLifecycle { heartbeats: Mutex::default(), grace };
    Controller::of::<Node>(lifecycle)
        .named("node-lifecycle-controller")
        .watches::<Lease>(node_of_lease)
        .watch(Watch::with_handler(kind::<Node>(), UnreadyNodes).without_reads())
        .reads::<Pod>()
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn node_of_lease(lease: &Lease, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let is_heartbeat = lease.metadata.namespace.as_deref() == Some(LEASES);
    Ok(is_heartbeat.then(|| ObjectKey::cluster(&lease.name_any())).into_iter().collect())
}

/// Enqueues the nodes that are not ready when another node becomes ready or is no longer ready: the taints of a node that is
/// not ready depend on whether any node is ready.
struct UnreadyNodes;

impl EventHandler<ObjectKey> for UnreadyNodes {
    fn handle(
        &self,
        delta: &Delta,
        cx: &HandlerContext,
        keys: &mut Enqueuer<'_, ObjectKey>,
    ) -> Result<(), BoxError> {
        let mut states = Vec::with_capacity(2);
        for state in delta.states() {
            states.push(is_ready(&*state.decode::<Node>()?));
        }
        if let [before, after] = states[..]
            && before == after
        {
            return Ok(());
        }
        let nodes = cx.lister::<Node>()?.all()?;
        let unready = nodes.iter().filter(|node| !is_ready(node));
        unready.for_each(|node| keys.add(ObjectKey::cluster(&node.name_any())));
        Ok(())
    }
}

fn is_ready(node: &Node) -> bool {
    ready(node).is_some_and(|condition| condition.status == "True")
}

impl Reconciler<Node> for NodeLifecycle {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Node>) -> Result<Action> {
        let Some(node) = cx.get(&key)? else {
            self.heartbeats.lock().unwrap_or_else(PoisonError::into_inner).forget(key.name());
            return Ok(Action::done());
        };
        let now = cx.now();
        let lease = cx.lister::<Lease>()?.get(&ObjectKey::namespaced(LEASES, key.name()))?;
        let last = {
            let mut heartbeats = self.heartbeats.lock().unwrap_or_else(PoisonError::into_inner);
            heartbeats.observe(&node, lease.as_deref(), now)
        };
        let deadline = self.grace.map(|grace| deadline(&node, last, grace));
        if deadline.is_some_and(|deadline| deadline <= now)
            && let Some(conditions) = lost(&node, now)
        {
            let was_ready = is_ready(&node);
            let status =
                NodeStatus { conditions: Some(conditions), ..node.status.clone().unwrap_or_default() };
            if was_ready {
                // First the pods: after an error, the node is still ready, and this step is repeated.
                mark_pods(&node, &cx).await?;
            }
            cx.update_status(&*node, status).await?;
            if was_ready {
                let note = format!("Node {} status is now: NodeNotReady", key.name());
                cx.recorder().named(COMPONENT).normal(&*node, "NodeNotReady", note);
            }
            return Ok(Action::done());
        }
        write_taints(&node, &cx).await?;
        Ok(wake::at(deadline.filter(|deadline| *deadline > now), now))
    }
}

/// Sets the condition `Ready` of the pods of a lost node to `False`.
async fn mark_pods(node: &Node, cx: &Context<Node>) -> Result<()> {
    let recorder = cx.recorder().named(COMPONENT);
    let name = node.name_any();
    for pod in &cx.lister::<Pod>()?.all()? {
        let on_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(&*name));
        if !on_node || !pods::is_ready(pod) {
            continue;
        }
        let mut status = pod.status.clone().unwrap_or_default();
        let condition = PodCondition {
            type_: "Ready".to_owned(),
            status: "False".to_owned(),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        };
        conditions::set(status.conditions.get_or_insert_default(), condition, &Time(cx.now()));
        match cx.update_status(pod, status).await {
            Ok(_) => recorder.warning(pod, "NodeNotReady", "Node is not ready"),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn write_taints(node: &Node, cx: &Context<Node>) -> Result<()> {
    // If no node is ready, the fault is more likely here than on all nodes, and no pod is evicted.
    let evicts = !is_ready(node) && cx.lister::<Node>()?.all()?.iter().any(is_ready);
    let wanted = taints(node, evicts, &Time(cx.now()));
    let has = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    if has == wanted {
        return Ok(());
    }
    let metadata = json!({ "uid": node.uid(), "resourceVersion": node.resource_version() });
    let taints = if wanted.is_empty() { json!(null) } else { json!(wanted) };
    let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { "taints": taints } }));
    let nodes: Api<Node> = Api::all(cx.client().clone());
    let written = nodes.patch(&node.name_any(), &component::patch(KUBE_CONTROLLER_MANAGER), &patch).await;
    match written.map_err(Error::from) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
