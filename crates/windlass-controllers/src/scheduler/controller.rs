//! Binds pods to nodes, preempts pods, and reports pods that fit on no node.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Binding, Namespace, ObjectReference, PersistentVolumeClaim, Pod, PodCondition,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;
use kube_client::api::{Api, Patch};
use kube_core::{ObjectMeta, PartialObjectMeta, ResourceExt};
use serde_json::json;
use tokio::time::Instant;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Reconciler, Result};

use super::cluster::{PREEMPTED, PodFacts};
use super::decision::{Decision, Room, Wait, decide};
use super::events::watch;
use super::filters::Request;
use super::state::{NAME, Reservation, SharedState, needs_node};
use super::volumes::PodVolumes;
use super::waiting::{Change, Seen};
use crate::component::{self, KUBE_SCHEDULER};
use crate::core::persistent_volume::SELECTED_NODE;
use crate::pod_disruption::{Disruption, disrupt};
use crate::pods::is_lenient;
use crate::{conditions, pods};

/// How many pods are bound concurrently.
const WORKERS: usize = 4;
/// The time after which a waiting pod is tried again without a change, as in kube-scheduler.
const RETRY_INTERVAL: Duration = Duration::from_mins(5);
/// How long a node is reserved for a pod whose claims are not bound, as in kube-scheduler.
const BIND_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

struct Scheduler {
    state: Arc<SharedState>,
    /// False: all pods ignore claims, pod affinity and topology spread.
    is_strict: bool,
}

/// Returns the controller. Without `is_strict`, pods ignore claims, pod affinity and topology spread.
pub(crate) fn controller(is_strict: bool) -> Controller {
    let state = Arc::new(SharedState::default());
    let scheduler = Scheduler { state: Arc::clone(&state), is_strict };
    let controller = Controller::keyed::<Pod>(NAME, scheduler).max_concurrent_reconciles(WORKERS);
    state.connect(controller.handle());
    watch(controller, &state)
}

impl Reconciler<Pod> for Scheduler {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
        let Some(pod) = cx.get(&key)?.filter(|pod| needs_node(pod)) else { return Ok(Action::done()) };
        if has_gates(&pod) {
            return Ok(Action::done());
        }
        let reserved = self.state.lock().reserved.get(&key).cloned();
        if let Some(reservation) = reserved {
            return self.await_volumes(&key, &pod, reservation, &cx).await;
        }
        if self.state.lock().cluster.pod(&key).is_some() {
            // The pod is bound, and the event is on the way.
            return Ok(Action::done());
        }
        self.schedule(&key, &pod, &cx).await
    }
}

fn has_gates(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty())
}

impl Scheduler {
    async fn schedule(&self, key: &ObjectKey, pod: &Pod, cx: &Context<Pod>) -> Result<Action> {
        let facts = PodFacts::of(pod);
        let Some((decision, volumes)) = self.decide(key, pod, &facts, cx)? else { return Ok(Action::done()) };
        match decision {
            Decision::Bind(node) if volumes.are_bound() => self.bind(key, pod, &node, cx).await,
            Decision::Bind(node) => {
                self.select_node(&volumes, &node, cx).await.inspect_err(|_| self.state.unplace(key))?;
                Ok(Action::requeue_after(BIND_TIMEOUT.unsigned_abs()))
            }
            Decision::Wait(wait) => self.wait(key, pod, &facts, wait, cx).await,
        }
    }

    /// Decides about a pod, and records the decision before another pod is decided about. `None` if the pod needs no node any
    /// more.
    ///
    /// All objects are read under the lock. The event of a later change waits for the lock, and sees the decision.
    fn decide(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        facts: &PodFacts,
        cx: &Context<Pod>,
    ) -> Result<Option<(Decision, PodVolumes)>> {
        let mut state = self.state.lock();
        let newest = cx.get(key)?.filter(|newest| newest.metadata.uid == pod.metadata.uid);
        if !newest.is_some_and(|newest| needs_node(&newest)) {
            return Ok(None);
        }
        let is_strict = self.is_strict && is_strict(pod, cx)?;
        let (volumes, obstacle) = match PodVolumes::of(pod, cx)? {
            _ if !is_strict => (PodVolumes::default(), None),
            Ok(volumes) => (volumes, None),
            Err(obstacle) => (PodVolumes::default(), Some(obstacle)),
        };
        let budgets = || -> Result<Vec<Arc<PodDisruptionBudget>>> {
            Ok(cx.lister::<PodDisruptionBudget>()?.all()?.into_iter().collect())
        };
        let request = Request { key, pod, facts, volumes: &volumes, is_strict };
        let decision = decide(request, &state.cluster, obstacle, budgets)?;
        let is_freed = match &decision {
            Decision::Bind(node) => {
                state.waiting.pause(key);
                if !volumes.are_bound() {
                    state.reserved.insert(key.clone(), Reservation { node: node.clone(), since: cx.now() });
                }
                state.cluster.place(key, node, facts.clone())
            }
            Decision::Wait(wait) => {
                state.waiting.insert(key, facts.priority, Seen::of(pod), wait.checks.clone(), Instant::now());
                match &wait.room {
                    Room::None => state.cluster.nominate(key, None),
                    Room::Awaited => false,
                    Room::Victims { node, .. } => {
                        state.cluster.nominate(key, Some((node.clone(), facts.clone())))
                    }
                }
            }
        };
        drop(state);
        if is_freed {
            self.state.wake(Change::PodGone);
        }
        Ok(Some((decision, volumes)))
    }

    /// Writes the node into the pod. The pod leaves the node in the state if the server refuses.
    async fn bind(&self, key: &ObjectKey, pod: &Pod, node: &str, cx: &Context<Pod>) -> Result<Action> {
        match bind(cx, pod, node).await {
            Ok(true) => {
                self.state.wake(Change::PodPlaced);
                let message = format!("Successfully assigned {key} to {node}");
                cx.recorder().about(pod).action("Binding").normal("Scheduled", message);
                Ok(Action::done())
            }
            Ok(false) => {
                self.state.unplace(key);
                Ok(Action::done())
            }
            Err(error) => {
                self.state.unplace(key);
                Err(error)
            }
        }
    }

    /// Asks for volumes that can be used on the node. Fails if another pod of a claim has just got another node.
    async fn select_node(&self, volumes: &PodVolumes, node: &str, cx: &Context<Pod>) -> Result<()> {
        let is_asked = |claim: &&PersistentVolumeClaim| {
            claim.annotations().get(SELECTED_NODE).is_some_and(|selected| selected == node)
        };
        for claim in volumes.delayed().filter(|claim| !is_asked(claim)) {
            let patch = Patch::Merge(json!({"metadata": {
                "resourceVersion": claim.resource_version(), "annotations": {SELECTED_NODE: node},
            }}));
            let key = ObjectKey::new(claim.metadata.namespace.as_deref(), &claim.name_any());
            cx.patch::<PersistentVolumeClaim, _>(&key, &patch).await?;
        }
        Ok(())
    }

    /// Binds a pod whose claims are bound. Chooses another node if the volumes cannot be used on the node.
    async fn await_volumes(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        reservation: Reservation,
        cx: &Context<Pod>,
    ) -> Result<Action> {
        let Reservation { node, since } = reservation;
        let volumes = PodVolumes::of(pod, cx)?.ok();
        let fits = {
            let state = self.state.lock();
            let node = state.cluster.node(&node).map(|node| node.facts);
            let rejection = |volumes: &PodVolumes| node.is_none_or(|node| volumes.rejection(node).is_some());
            volumes.as_ref().is_some_and(|volumes| !rejection(volumes))
        };
        match volumes.filter(|_| fits) {
            Some(volumes) if volumes.are_bound() => {
                self.state.lock().reserved.remove(key);
                self.bind(key, pod, &node, cx).await
            }
            Some(volumes) if volumes.wait_for(&node) && cx.now().duration_since(since) < BIND_TIMEOUT => {
                Ok(Action::requeue_after(BIND_TIMEOUT.unsigned_abs()))
            }
            _ => {
                self.state.unplace(key);
                self.schedule(key, pod, cx).await
            }
        }
    }

    /// Reports that a pod fits on no node, and makes room for the pod.
    async fn wait(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        facts: &PodFacts,
        wait: Wait,
        cx: &Context<Pod>,
    ) -> Result<Action> {
        let Wait { message, room, .. } = wait;
        if set_unschedulable(cx, pod, &message, &room).await? {
            cx.recorder().about(pod).action("Scheduling").warning("FailedScheduling", message);
        }
        if let Room::Victims { node, pods } = room {
            self.state.end_lower_nominations(&node, facts.priority);
            for victim in pods.iter().filter(|victim| *victim != key) {
                preempt(cx, pod, victim, &node).await?;
            }
        }
        Ok(Action::requeue_after(RETRY_INTERVAL))
    }
}

/// Returns whether the annotations of the pod and of the pod's namespace allow the pod to wait.
fn is_strict(pod: &Pod, cx: &Context<Pod>) -> Result<bool> {
    let key = ObjectKey::cluster(&pod.namespace().unwrap_or_default());
    let namespace = cx.lister::<PartialObjectMeta<Namespace>>()?.get(&key)?;
    let is_lenient_namespace = namespace.is_some_and(|namespace| is_lenient(namespace.annotations()));
    Ok(!is_lenient(pod.annotations()) && !is_lenient_namespace)
}

/// Binds a pod to a node. Returns false if the pod is gone.
async fn bind(cx: &Context<Pod>, pod: &Pod, node: &str) -> Result<bool> {
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
        Err(error) if error.is_not_found() => Ok(false),
        other => other.map(|_| true),
    }
}

/// Ends a pod so that `pod` fits on the node.
async fn preempt(cx: &Context<Pod>, pod: &Pod, victim: &ObjectKey, node: &str) -> Result<()> {
    let Some(victim) = cx.get(victim)?.filter(|victim| !pods::is_terminating(victim)) else { return Ok(()) };
    let message = format!("{NAME}: preempting to accommodate a higher priority pod");
    let disruption = Disruption { reason: PREEMPTED, message: &message, component: KUBE_SCHEDULER };
    if disrupt(cx, &victim, disruption).await? {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let event = cx.recorder().about(&*victim).related(pod).action("Preempting");
        event.normal("Preempted", format!("Preempted by pod {uid} on node {node}"));
    }
    Ok(())
}

/// Sets the condition `PodScheduled` to `False`, and the nominated node. Returns whether the status was changed.
async fn set_unschedulable(cx: &Context<Pod>, pod: &Pod, message: &str, room: &Room) -> Result<bool> {
    let mut status = pod.status.clone().unwrap_or_default();
    let condition = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        message: Some(message.to_owned()),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    };
    conditions::set(status.conditions.get_or_insert_default(), condition, &Time(cx.now()));
    match room {
        Room::None => status.nominated_node_name = None,
        Room::Awaited => {}
        Room::Victims { node, .. } => status.nominated_node_name = Some(node.clone()),
    }
    if pod.status.as_ref() == Some(&status) {
        return Ok(false);
    }
    cx.update_status(pod, status).await?;
    Ok(true)
}
