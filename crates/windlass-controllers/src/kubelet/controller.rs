//! Applies the lifecycle to the pods of the simulated node and writes their status.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodStatus, Secret, Service};
use kube_client::api::{Api, DeleteParams, Preconditions};
use kube_core::{PartialObjectMeta, Resource, ResourceExt};
use windlass_runtime::source::EventStream;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, ObjectKeyExt, Reconciler, Result};

use super::addresses::AddressPool;
use super::choice::{Choice, PodMode, Simulation};
use super::lifecycle::{PodAddresses, PodMemory, advance, reject};
use super::node::{HOST_IP, NODE_NAME};
use super::real::{RealNode, Worker};
use super::running_pods::RunningPods;
use super::services::{self, ServiceProxy};
use crate::component::{self, KUBELET};
use crate::host_ports::{self, conflict, host_ports};
use crate::wake;

/// How many pods are reconciled concurrently.
const WORKERS: usize = 8;

/// The options of a node that runs programs.
pub(crate) struct RunPods {
    pub pods: RunningPods,
    pub mode: PodMode,
    /// Ports of the machine that pods reach at `host.windlass.internal`.
    pub host_ports: Vec<u16>,
}

#[derive(Default)]
struct Kubelet {
    addresses: Mutex<AddressPool>,
    /// The pods whose programs run.
    real: Option<Arc<RealNode>>,
    /// The state of each simulated pod beside the object, with the pod's uid.
    memories: Mutex<BTreeMap<ObjectKey, (String, PodMemory)>>,
}

/// Returns the controllers of a node: without `run`, all pods are simulated.
pub(crate) fn controllers(run: Option<RunPods>) -> Vec<Controller> {
    let Some(RunPods { pods, mode, host_ports }) = run else { return vec![controller(Kubelet::default())] };
    let (wake, woken) = EventStream::channel(|key: &ObjectKey, _| Ok(vec![key.clone()]));
    let proxy = ServiceProxy::new(pods.clone(), host_ports);
    let worker = Worker::new(pods, Arc::clone(&proxy), wake, mode == PodMode::All);
    let node = Arc::new(RealNode::new(worker, Choice::new(mode)));
    let (maps, secrets) = (Arc::clone(&node), Arc::clone(&node));
    let kubelet = Kubelet { real: Some(node), ..Kubelet::default() };
    let kubelet = controller(kubelet)
        .source(woken)
        .reads::<Service>()
        .watches::<PartialObjectMeta<ConfigMap>>(move |map, _| {
            Ok(maps.object_changed(&ObjectKey::of(map), false))
        })
        .watches::<PartialObjectMeta<Secret>>(move |secret, _| {
            Ok(secrets.object_changed(&ObjectKey::of(secret), true))
        });
    vec![kubelet, services::controller(proxy)]
}

fn controller(kubelet: Kubelet) -> Controller {
    Controller::of::<Pod>(kubelet).named("kubelet").max_concurrent_reconciles(WORKERS)
}

impl Reconciler<Pod> for Kubelet {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
        let ours = |pod: &Arc<Pod>| {
            pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(NODE_NAME))
        };
        let Some(pod) = cx.get(&key)?.filter(ours) else {
            self.forget(&key);
            return Ok(Action::done());
        };
        let uid = pod.uid().unwrap_or_default();
        let known = self.memory_of(&key, &uid);
        let addresses = PodAddresses { host_ip: HOST_IP.to_owned(), pod_ip: self.address(&pod, &uid) };
        let mut memory = match (known, &self.real) {
            (Some(memory), _) => memory,
            (None, None) => PodMemory::default(),
            (None, Some(real)) => match self.admit(real, &key, &uid, &pod, &addresses).await {
                Ok(()) => return self.run(real, &key, pod, addresses, &cx).await,
                Err(simulation) => PodMemory::of(simulation),
            },
        };
        let step = if is_new(&pod) && finds_ports_taken(&pod, &cx)? {
            reject(&pod, "NodePorts", &format!("Predicate NodePorts failed: {}", host_ports::TAKEN))
        } else {
            advance(&pod, &addresses, &mut memory, cx.now())
        };
        if differs(pod.status.as_ref(), &step.status)? && !write_status(&cx, &pod, step.status).await? {
            return Ok(Action::done());
        }
        for event in &step.events {
            cx.recorder().event(event.kind, pod.object_ref(&()), event.reason, event.message.as_str());
        }
        let held = pod.metadata.deletion_grace_period_seconds == Some(0);
        if step.remove && !held {
            remove(&cx, &pod).await?;
        }
        self.memories().insert(key, (uid, memory));
        Ok(wake::at(step.wake_at, cx.now()))
    }
}

impl Kubelet {
    fn memories(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (String, PodMemory)>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> MutexGuard<'_, AddressPool> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state kept for this simulated pod. State of an earlier pod with the same name is dropped.
    fn memory_of(&self, key: &ObjectKey, uid: &str) -> Option<PodMemory> {
        let mut memories = self.memories();
        match memories.get(key) {
            Some((known, memory)) if known == uid => Some(memory.clone()),
            Some(_) => {
                let earlier = memories.remove(key);
                drop(memories);
                self.release(earlier);
                None
            }
            None => None,
        }
    }

    /// Decides whether the programs of a pod run, and forgets an earlier pod with the same name.
    async fn admit(
        &self,
        real: &RealNode,
        key: &ObjectKey,
        uid: &str,
        pod: &Pod,
        addresses: &PodAddresses,
    ) -> std::result::Result<(), Simulation> {
        if let Some(earlier) = real.forget(key, Some(uid)) {
            self.addresses().release(&earlier);
        }
        real.admit(key, uid, pod, addresses).await
    }

    /// Performs a step of a pod whose programs run.
    async fn run(
        &self,
        real: &RealNode,
        key: &ObjectKey,
        pod: Arc<Pod>,
        addresses: PodAddresses,
        cx: &Context<Pod>,
    ) -> Result<Action> {
        if is_new(&pod) && finds_ports_taken(&pod, cx)? {
            let step =
                reject(&pod, "NodePorts", &format!("Predicate NodePorts failed: {}", host_ports::TAKEN));
            write_status(cx, &pod, step.status).await?;
            return Ok(Action::done());
        }
        let Some(step) = real.step(key, &pod, addresses, cx)? else { return Ok(Action::done()) };
        if differs(pod.status.as_ref(), &step.status)? && !write_status(cx, &pod, step.status).await? {
            return Ok(Action::done());
        }
        let held = pod.metadata.deletion_grace_period_seconds == Some(0);
        if step.remove && !held {
            remove(cx, &pod).await?;
        }
        Ok(wake::at(step.wake_at, cx.now()))
    }

    fn forget(&self, key: &ObjectKey) {
        let gone = self.memories().remove(key);
        self.release(gone);
        if let Some(uid) = self.real.as_ref().and_then(|real| real.forget(key, None)) {
            self.addresses().release(&uid);
        }
    }

    fn release(&self, gone: Option<(String, PodMemory)>) {
        if let Some((uid, _)) = gone {
            self.addresses().release(&uid);
        }
    }

    fn address(&self, pod: &Pod, uid: &str) -> Option<String> {
        if pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true)) {
            return None;
        }
        let mut addresses = self.addresses();
        if let Some(shown) = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()) {
            addresses.adopt(uid, shown);
        }
        addresses.assign(uid).map(|address| address.to_string())
    }
}

/// Returns whether the pod is not admitted yet.
fn is_new(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let is_started = status.is_some_and(|status| status.start_time.is_some());
    !is_started && !has_ended(pod) && pod.metadata.deletion_timestamp.is_none()
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Returns whether an earlier pod has a port of the node that this pod wants. The scheduler prevents such
/// pods; a pod may bypass the scheduler.
fn finds_ports_taken(pod: &Pod, cx: &Context<Pod>) -> Result<bool> {
    let wanted = host_ports(pod);
    if wanted.is_empty() {
        return Ok(false);
    }
    let is_admitted = |other: &Pod| {
        let is_here = other.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(NODE_NAME));
        is_here && !is_new(other) && !has_ended(other)
    };
    let others = cx.lister::<Pod>()?.all()?;
    Ok(others.iter().any(|other| is_admitted(other) && conflict(&wanted, &host_ports(other))))
}

/// Returns whether two statuses differ when serialized, where times have no fractions.
fn differs(before: Option<&PodStatus>, after: &PodStatus) -> Result<bool> {
    let before = before.map(serde_json::to_value).transpose().map_err(Error::other)?;
    Ok(before != Some(serde_json::to_value(after).map_err(Error::other)?))
}

/// Writes the status. Returns false if the pod is gone.
async fn write_status(cx: &Context<Pod>, pod: &Pod, status: PodStatus) -> Result<bool> {
    let next = Pod { status: Some(status), ..pod.clone() };
    match api(cx, pod)
        .replace_status(&pod.name_any(), &component::post(KUBELET), &next)
        .await
        .map_err(Error::from)
    {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes the pod object after all containers have stopped.
async fn remove(cx: &Context<Pod>, pod: &Pod) -> Result<()> {
    let now = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api(cx, pod).delete(&pod.name_any(), &now).await.map_err(Error::from) {
        Err(error) if !(error.is_not_found() || error.is_conflict()) => Err(error),
        _ => Ok(()),
    }
}

fn api(cx: &Context<Pod>, pod: &Pod) -> Api<Pod> {
    Api::namespaced(cx.client().clone(), &pod.namespace().unwrap_or_default())
}
