//! Applies the lifecycle to the pods of the simulated node and writes their status.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, PodSpec, PodStatus, Secret, Service};
use kube_client::api::{Api, DeleteParams, Preconditions};
use kube_core::{PartialObjectMeta, ResourceExt};
use windlass_runtime::source::EventStream;
use windlass_runtime::{
    Action, Context, Controller, Error, HandlerContext, ObjectKey, ObjectKeyExt, Reconciler, Result,
};

use super::addresses::AddressPool;
use super::choice::{Choice, PodMode, Simulation};
use super::lifecycle::{PodAddresses, PodMemory, Sources, Step, Surroundings, advance, reject};
use super::node::NODE_NAME;
use super::node_registry::{NodeRegistry, node_of};
use super::real::{RealNode, Worker};
use super::resolve::{Objects, References, add_own_objects};
use super::running_pods::RunningPods;
use super::services::{self, ServiceProxy};
use super::waiting_pods::WaitingPods;
use crate::component::{self, KUBELET};
use crate::host_ports::{self, conflict, host_ports};
use crate::pods::{self, is_lenient};
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
    nodes: Arc<NodeRegistry>,
    addresses: Mutex<AddressPool>,
    /// The pods whose programs run.
    real: Option<Arc<RealNode>>,
    /// The state of each simulated pod beside the object, with the pod's uid.
    memories: Mutex<BTreeMap<ObjectKey, (String, PodMemory)>>,
    /// True if simulated pods wait for missing objects and for probes.
    is_strict: bool,
    waiting: Arc<WaitingPods>,
}

/// Returns the controllers of the nodes: without `run`, all pods are simulated. With `is_strict`, simulated pods wait for missing
/// objects and for probes.
pub(crate) fn controllers(
    run: Option<RunPods>,
    nodes: &Arc<NodeRegistry>,
    is_strict: bool,
) -> Vec<Controller> {
    let nodes = Arc::clone(nodes);
    let Some(RunPods { pods, mode, host_ports }) = run else {
        return vec![controller(Kubelet { nodes, is_strict, ..Kubelet::default() })];
    };
    let (wake, woken) = EventStream::channel(|key: &ObjectKey, _| Ok(vec![key.clone()]));
    let proxy = ServiceProxy::new(pods.clone(), host_ports);
    let worker = Worker::new(pods, Arc::clone(&proxy), wake, mode == PodMode::All);
    let node = Arc::new(RealNode::new(worker, Choice::new(mode)));
    let kubelet = Kubelet { nodes, real: Some(node), is_strict, ..Kubelet::default() };
    vec![controller(kubelet).source(woken).reads::<Service>(), services::controller(proxy)]
}

fn controller(kubelet: Kubelet) -> Controller {
    let (of_map, of_secret) = (kubelet.dependents(), kubelet.dependents());
    let nodes = Arc::clone(&kubelet.nodes);
    let is_strict = kubelet.is_strict;
    let reads_objects = is_strict || kubelet.real.is_some();
    let mut controller = Controller::of::<Pod>(kubelet).named("kubelet").max_concurrent_reconciles(WORKERS);
    if is_strict {
        controller = controller.watches::<PartialObjectMeta<Namespace>>(pods_of_lenient);
    }
    if reads_objects {
        controller = controller
            .watches::<PartialObjectMeta<ConfigMap>>(move |map, _| Ok(of_map.of(&ObjectKey::of(map), false)))
            .watches::<PartialObjectMeta<Secret>>(move |secret, _| {
                Ok(of_secret.of(&ObjectKey::of(secret), true))
            });
    }
    nodes.connect(controller.handle());
    controller
}

/// Returns the pods that no longer wait if the namespace says so.
fn pods_of_lenient(namespace: &PartialObjectMeta<Namespace>, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    if !is_lenient(namespace.annotations()) {
        return Ok(Vec::new());
    }
    let pods = cx.lister::<Pod>()?.namespace(&namespace.name_any()).all()?;
    let waiting = pods.iter().filter(|pod| pods::is_active(pod) && !pods::is_ready(pod));
    Ok(waiting.map(ObjectKey::of).collect())
}

/// The pods that depend on ConfigMaps and Secrets.
struct Dependents {
    waiting: Arc<WaitingPods>,
    real: Option<Arc<RealNode>>,
}

impl Dependents {
    /// Returns the pods that continue when an object changes.
    fn of(&self, object: &ObjectKey, is_secret: bool) -> Vec<ObjectKey> {
        let mut pods = self.waiting.of(object, is_secret);
        pods.extend(self.real.iter().flat_map(|real| real.object_changed(object, is_secret)));
        pods
    }
}

impl Reconciler<Pod> for Kubelet {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
        let Some(pod) = cx.get(&key)?.filter(|pod| self.nodes.has(pod)) else {
            self.forget(&key);
            return Ok(Action::done());
        };
        if self.nodes.is_stopped(&pod) {
            return Ok(Action::done());
        }
        let uid = pod.uid().unwrap_or_default();
        let known = self.memory_of(&key, &uid);
        let host_ip = self.nodes.address(node_of(&pod));
        let addresses = PodAddresses { host_ip, pod_ip: self.address(&pod, &uid) };
        let real = self.real.as_ref().filter(|_| node_of(&pod) == NODE_NAME);
        let mut memory = match (known, real) {
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
            self.simulate(&key, &pod, &addresses, &mut memory, &cx).await?
        };
        if differs(pod.status.as_ref(), &step.status)? && !write_status(&cx, &pod, step.status).await? {
            return Ok(Action::done());
        }
        step.events.iter().for_each(|event| event.record(&pod, &cx));
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

    fn dependents(&self) -> Dependents {
        Dependents { waiting: Arc::clone(&self.waiting), real: self.real.clone() }
    }

    /// Computes the next step of a simulated pod. Objects are read only if the step needs objects.
    async fn simulate(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        addresses: &PodAddresses,
        memory: &mut PodMemory,
        cx: &Context<Pod>,
    ) -> Result<Step> {
        let spec = pod.spec.clone().unwrap_or_default();
        let required = References::required_by(&spec);
        let needs_care = !required.is_empty() || has_probes(&spec);
        let has_probes = needs_care && self.is_strict && is_strict(pod, cx)?;
        let is_unread = has_probes && !required.is_empty();
        let sources = if is_unread { Sources::Unread } else { Sources::Unneeded };
        let around = Surroundings { addresses, sources, has_probes };
        let before = is_unread.then(|| memory.clone());
        let step = advance(pod, around, memory, cx.now());
        let Some(before) = before.filter(|_| step.needs_objects) else {
            self.waiting.remove(key);
            return Ok(step);
        };
        self.waiting.add(key, required.clone());
        let mut objects = read(required, &pod.namespace().unwrap_or_default(), cx).await?;
        add_own_objects(&spec, &mut objects);
        *memory = before;
        let around = Surroundings { sources: Sources::Read(&objects), ..around };
        let step = advance(pod, around, memory, cx.now());
        if !step.is_blocked {
            self.waiting.remove(key);
        }
        Ok(step)
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
        self.waiting.remove(key);
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

/// Returns whether the annotations of a pod and the pod's namespace allow the pod to wait for missing objects and for probes.
fn is_strict(pod: &Pod, cx: &Context<Pod>) -> Result<bool> {
    let key = ObjectKey::cluster(&pod.namespace().unwrap_or_default());
    let namespace = cx.lister::<PartialObjectMeta<Namespace>>()?.get(&key)?;
    let is_lenient_namespace = namespace.is_some_and(|namespace| is_lenient(namespace.annotations()));
    Ok(!is_lenient(pod.annotations()) && !is_lenient_namespace)
}

fn has_probes(spec: &PodSpec) -> bool {
    let mut containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    containers.any(|container| container.startup_probe.is_some() || container.readiness_probe.is_some())
}

/// Reads the objects of a namespace that exist.
async fn read(references: References, namespace: &str, cx: &Context<Pod>) -> Result<Objects> {
    let mut objects = Objects::default();
    let maps: Api<ConfigMap> = Api::namespaced(cx.client().clone(), namespace);
    for name in references.config_maps.into_iter().filter(|name| !name.is_empty()) {
        if let Some(map) = maps.get_opt(&name).await.map_err(Error::from)? {
            objects.config_maps.insert(name, map);
        }
    }
    let secrets: Api<Secret> = Api::namespaced(cx.client().clone(), namespace);
    for name in references.secrets.into_iter().filter(|name| !name.is_empty()) {
        if let Some(secret) = secrets.get_opt(&name).await.map_err(Error::from)? {
            objects.secrets.insert(name, secret);
        }
    }
    Ok(objects)
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
    let is_admitted = |other: &Pod| node_of(other) == node_of(pod) && !is_new(other) && !has_ended(other);
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
