//! Registers the simulated nodes, reports their status, and renews their Leases.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_client::api::{Api, Patch};
use kube_core::{ObjectMeta, ResourceExt};
use serde_json::json;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Reconciler, Result, RunContext};

use super::node::{self, NODE_NAME, NodeState, is_simulated};
use super::node_registry::{NodeRegistry, node_of};
use crate::component::{self, KUBELET};

/// The duration of the Lease.
const LEASE_SECONDS: i32 = 40;
const LEASES: &str = "kube-node-lease";
/// The interval of reports of an unchanged status, as a real kubelet's.
const STATUS_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// Creates the nodes. A node that exists is kept. Then keeps the first node: if the first node was deleted, the next
/// heartbeat creates the first node again.
pub(crate) async fn register(cx: RunContext, others: Vec<Node>, heartbeat: Duration) -> Result<()> {
    let nodes: Api<Node> = Api::all(cx.client().clone());
    let is_first = |node: &&Node| node.metadata.name.as_deref() == Some(NODE_NAME);
    let first = others.iter().find(is_first).map_or_else(node::first, first_like);
    let others = others.iter().filter(|node| !is_first(node)).cloned();
    for node in std::iter::once(first.clone()).chain(others) {
        let name = node.name_any();
        let doing = |error: Error| error.while_doing(format_args!("registering the node {name}"));
        create(&nodes, node).await.map_err(doing)?;
    }
    loop {
        tokio::select! {
            biased;
            () = cx.shutdown().requested() => return Ok(()),
            () = tokio::time::sleep(heartbeat) => {}
        }
        let created = match nodes.get_opt(NODE_NAME).await.map_err(Error::from) {
            Ok(None) => create(&nodes, first.clone()).await,
            other => other.map(drop),
        };
        if let Err(error) = created {
            tracing::warn!(%error, "the first node cannot be registered");
        }
    }
}

/// Returns the first node with the labels, annotations and taints of `node`.
fn first_like(node: &Node) -> Node {
    let mut first = node::first();
    first.labels_mut().extend(node.labels().clone());
    first.annotations_mut().extend(node.annotations().clone());
    first.spec.get_or_insert_default().taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
    first.status.clone_from(&node.status);
    first
}

async fn create(nodes: &Api<Node>, node: Node) -> Result<()> {
    match nodes.create(&component::post(KUBELET), &node::simulated(node)).await.map_err(Error::from) {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}

/// Reports the status of each simulated node.
struct Keeper {
    nodes: Arc<NodeRegistry>,
    /// The version of the container runtime of the first node, as in `process://0.1.0`.
    runtime: Option<String>,
    heartbeat: Duration,
}

/// Returns the controller of the simulated nodes. `runtime` is the version of the container runtime of the first node, and `heartbeat`
/// the interval of heartbeats.
pub(crate) fn controller(
    nodes: Arc<NodeRegistry>,
    runtime: Option<String>,
    heartbeat: Duration,
) -> Controller {
    Controller::of::<Node>(Keeper { nodes, runtime, heartbeat }).named("simulated-nodes").reads::<Pod>()
}

impl Reconciler<Node> for Keeper {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Node>) -> Result<Action> {
        let Some(node) = cx.get(&key)?.filter(|node| is_simulated(node)) else {
            if self.nodes.remove(key.name()) {
                self.wake_pods(key.name(), &cx)?;
            }
            return Ok(Action::done());
        };
        if self.nodes.set(&node) {
            self.wake_pods(key.name(), &cx)?;
        }
        if NodeState::of(&node) == NodeState::Stopped {
            return Ok(Action::done());
        }
        let now = cx.now();
        self.label(&node, &cx).await?;
        if needs_report(&node, now) {
            let address = self.nodes.address(key.name());
            let status = node::status(&node, &address, self.runtime.as_deref(), now);
            let patch = Patch::Merge(json!({ "status": status }));
            let nodes: Api<Node> = Api::all(cx.client().clone());
            let reported = nodes.patch_status(key.name(), &component::patch(KUBELET), &patch).await;
            ignore_absent(reported.map_err(Error::from))?;
        }
        renew(&node, MicroTime(now), &cx).await?;
        Ok(Action::requeue_after(self.heartbeat))
    }
}

impl Keeper {
    /// Queues the pods of a node in the kubelet.
    fn wake_pods(&self, node: &str, cx: &Context<Node>) -> Result<()> {
        let pods = cx.lister::<Pod>()?.all()?;
        let on_node = pods.iter().filter(|pod| node_of(pod) == node);
        self.nodes
            .wake(on_node.map(|pod| ObjectKey::new(pod.metadata.namespace.as_deref(), &pod.name_any())));
        Ok(())
    }

    /// Adds the labels of a kubelet to a node that another client has created.
    async fn label(&self, node: &Node, cx: &Context<Node>) -> Result<()> {
        let mut missing = node::labels(&node.name_any());
        missing.retain(|key, _| !node.labels().contains_key(key));
        if missing.is_empty() {
            return Ok(());
        }
        let nodes: Api<Node> = Api::all(cx.client().clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": missing}}));
        let labelled = nodes.patch(&node.name_any(), &component::patch(KUBELET), &patch).await;
        ignore_absent(labelled.map_err(Error::from))
    }
}

/// Returns whether the status must be written: the node is new, the condition `Ready` is another one, or the last report is
/// old.
fn needs_report(node: &Node, now: Timestamp) -> bool {
    let status = node.status.clone().unwrap_or_default();
    let ready = NodeState::of(node) == NodeState::Ready;
    let reported = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
    let is_current = reported.is_some_and(|condition| {
        condition.status == if ready { "True" } else { "False" }
            && condition
                .last_heartbeat_time
                .as_ref()
                .is_some_and(|time| now.duration_since(time.0) < STATUS_INTERVAL)
    });
    !is_current || status.addresses.is_none()
}

async fn renew(node: &Node, now: MicroTime, cx: &Context<Node>) -> Result<()> {
    let name = node.name_any();
    let leases: Api<Lease> = Api::namespaced(cx.client().clone(), LEASES);
    let renewal = json!({ "spec": { "renewTime": now } });
    let renewed = leases.patch(&name, &component::patch(KUBELET), &Patch::Merge(renewal)).await;
    match renewed.map_err(Error::from) {
        Err(error) if error.is_not_found() => {}
        other => return other.map(drop),
    }
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.clone(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(LEASES.to_owned()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }),
    };
    let created = leases.create(&component::post(KUBELET), &lease).await.map_err(Error::from);
    match created {
        // The namespace of the Leases is not there yet, or the Lease of an earlier node of the name is not gone yet.
        Err(error) if !(error.is_not_found() || error.is_already_exists()) => Err(error),
        _ => Ok(()),
    }
}

fn ignore_absent<T>(result: Result<T>) -> Result<()> {
    match result {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
