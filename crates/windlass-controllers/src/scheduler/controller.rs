//! Binds pods to nodes, and reports pods that fit on no node.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_client::api::Api;
use kube_core::{ObjectMeta, Resource, ResourceExt};
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Reconciler, Result};

use super::fit::{Candidate, choose, requests};
use super::requested::RequestedResources;
use crate::component::{self, KUBE_SCHEDULER};
use crate::conditions;

/// The name of the default scheduler. Pods that name another scheduler are ignored.
const NAME: &str = "default-scheduler";
/// When an unschedulable pod is tried again if no node changes before.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Scheduler {
    requested: Mutex<RequestedResources>,
}

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Pod>(Scheduler::default()).named(NAME).watches::<Node>(|_, cx| pending_pods(cx))
}

/// Returns all pods without a node: a change of any node may make them schedulable.
fn pending_pods(cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let pods = cx.lister::<Pod>()?.all()?;
    Ok(pods.iter().filter(|pod| needs_node(pod)).map(key_of).collect())
}

fn key_of(object: &impl Resource) -> ObjectKey {
    ObjectKey::new(object.meta().namespace.as_deref(), &object.name_any())
}

fn needs_node(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    spec.node_name.is_none()
        && pod.metadata.deletion_timestamp.is_none()
        && spec.scheduler_name.as_deref().is_none_or(|name| name == NAME)
}

impl Reconciler<Pod> for Scheduler {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
        let pod = cx.get(&key)?;
        self.update_requested(&key, pod.as_deref());
        let Some(pod) = pod.filter(|pod| needs_node(pod)) else { return Ok(Action::done()) };
        let gated = pod.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten()).next().is_some();
        if gated {
            let message = "Scheduling is blocked due to non-empty scheduling gates";
            set_unschedulable(&cx, &pod, "SchedulingGated", message).await?;
            return Ok(Action::done());
        }
        match self.find_node(&pod, &cx)? {
            Ok(node) => {
                bind(&cx, &pod, &node).await?;
                self.requested().add(&key, &node, requests(&pod));
                let message = format!("Successfully assigned {key} to {node}");
                cx.recorder().normal(&*pod, "Scheduled", message);
                Ok(Action::done())
            }
            Err(message) => {
                if set_unschedulable(&cx, &pod, "Unschedulable", &message).await? {
                    cx.recorder().warning(&*pod, "FailedScheduling", message);
                }
                Ok(Action::requeue_after(RETRY_INTERVAL))
            }
        }
    }
}

impl Scheduler {
    fn requested(&self) -> MutexGuard<'_, RequestedResources> {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the requested resources after a pod was scheduled, has ended, or is gone.
    fn update_requested(&self, key: &ObjectKey, pod: Option<&Pod>) {
        let ended = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            matches!(phase, Some("Succeeded" | "Failed"))
        };
        let placed = pod
            .filter(|pod| !ended(pod))
            .and_then(|pod| Some((pod, pod.spec.as_ref()?.node_name.as_deref()?)));
        match placed {
            Some((pod, node)) => self.requested().add(key, node, requests(pod)),
            None => self.requested().remove(key),
        }
    }

    fn find_node(&self, pod: &Pod, cx: &Context<Pod>) -> Result<Result<String, String>> {
        let nodes = cx.lister::<Node>()?.all()?;
        let ready = |node: &Node| {
            let status = node.status.as_ref();
            conditions::is_true(status.and_then(|status| status.conditions.as_ref()), "Ready")
        };
        let requested = self.requested();
        let candidates: Vec<Candidate<'_>> = nodes
            .iter()
            .filter(|node| ready(node))
            .map(|node| Candidate { node, requested: requested.on_node(&node.name_any()) })
            .collect();
        Ok(choose(pod, &candidates))
    }
}

async fn bind(cx: &Context<Pod>, pod: &Pod, node: &str) -> Result<()> {
    let binding = Binding {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let pods: Api<Pod> = Api::namespaced(cx.client().clone(), &pod.namespace().unwrap_or_default());
    let bound: Result<serde_json::Value, _> =
        pods.create_subresource("binding", &pod.name_any(), &component::post(KUBE_SCHEDULER), &binding).await;
    match bound.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// Sets the condition `PodScheduled` to `False`. Returns whether that changed the status.
async fn set_unschedulable(cx: &Context<Pod>, pod: &Pod, reason: &str, message: &str) -> Result<bool> {
    let mut status = pod.status.clone().unwrap_or_default();
    let condition = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    };
    conditions::set(status.conditions.get_or_insert_default(), condition, &Time(cx.now()));
    if pod.status.as_ref() == Some(&status) {
        return Ok(false);
    }
    cx.update_status(pod, status).await?;
    Ok(true)
}
