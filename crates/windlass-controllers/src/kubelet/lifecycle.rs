//! The state machine of a simulated pod: takes the object, the annotations and the time, and returns the next status.

mod containers;
mod end;
mod mount;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container as ContainerSpec, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube_core::ResourceExt;
use windlass_runtime::events::EventType;

use super::choice::Simulation;
use super::container::{ContainerMemory, waiting_for};
use super::pod_event::PodEvent;
use super::readiness;
use super::resolve::{MountError, Objects};
use super::restart::Restart;
use super::script::ContainerScript;

/// The state of a pod beside the object. Without the state, only times are less precise.
#[derive(Clone, Debug, Default)]
pub(super) struct PodMemory {
    containers: BTreeMap<String, ContainerMemory>,
    stopping_since: Option<Timestamp>,
    /// True if the volumes are mounted, or have been found not to matter.
    is_mounted: bool,
    /// The last Event about a volume.
    mount_error: Option<MountError>,
    /// Why no program runs.
    simulation: Simulation,
}

impl PodMemory {
    /// Returns the memory of a new pod.
    pub(super) fn of(simulation: Simulation) -> Self {
        Self { simulation, ..Self::default() }
    }
}

/// The result of a step.
#[derive(Debug)]
pub(super) struct Step {
    /// The next status of the pod.
    pub status: PodStatus,
    pub events: Vec<PodEvent>,
    /// When to continue even if nothing else changes.
    pub wake_at: Option<Timestamp>,
    /// All containers have stopped and the object can be deleted.
    pub remove: bool,
    /// The pod needs objects that have not been read: see [`Sources::Unread`].
    pub needs_objects: bool,
    /// An object that the pod needs is missing. The pod continues when the object changes.
    pub is_blocked: bool,
}

/// The addresses that the node gives to a pod.
#[derive(Clone, Debug)]
pub(super) struct PodAddresses {
    pub host_ip: String,
    /// The pod's own address.
    pub pod_ip: Option<String>,
}

/// The objects that a pod refers to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sources<'a> {
    /// The pod runs without any object.
    Unneeded,
    /// No object has been read. A step that needs an object ends early, with `needs_objects`.
    Unread,
    Read(&'a Objects),
}

/// The node of a pod, as far as the node matters for a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    pub addresses: &'a PodAddresses,
    pub sources: Sources<'a>,
    /// True if probes delay the pod.
    pub has_probes: bool,
}

/// Returns `NAME_NAMESPACE(UID)`, the pod in messages of the kubelet.
pub(super) fn pod_title(pod: &Pod) -> String {
    let (namespace, uid) = (pod.namespace().unwrap_or_default(), pod.uid().unwrap_or_default());
    format!("{}_{namespace}({uid})", pod.name_any())
}

/// Computes the next step of a pod.
pub(super) fn advance(pod: &Pod, around: Surroundings<'_>, memory: &mut PodMemory, now: Timestamp) -> Step {
    let status = pod.status.clone().unwrap_or_default();
    let lifecycle = PodLifecycle {
        pod,
        spec: pod.spec.clone().unwrap_or_default(),
        around,
        status,
        memory,
        now,
        events: Vec::new(),
        needs_objects: false,
        is_blocked: false,
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return lifecycle.terminate();
    }
    if matches!(lifecycle.status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return lifecycle.finish(None);
    }
    if lifecycle.status.start_time.is_none() {
        return lifecycle.admit();
    }
    lifecycle.run()
}

/// Rejects a pod that the node cannot take: the pod fails.
pub(super) fn reject(pod: &Pod, reason: &'static str, message: &str) -> Step {
    let status = PodStatus {
        phase: Some("Failed".to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(format!("Pod was rejected: {message}")),
        qos_class: pod.status.as_ref().and_then(|status| status.qos_class.clone()),
        ..PodStatus::default()
    };
    let event = PodEvent::new(EventType::Warning, reason, message.to_owned());
    Step {
        status,
        events: vec![event],
        wake_at: None,
        remove: false,
        needs_objects: false,
        is_blocked: false,
    }
}

struct PodLifecycle<'a> {
    pod: &'a Pod,
    spec: PodSpec,
    around: Surroundings<'a>,
    status: PodStatus,
    memory: &'a mut PodMemory,
    now: Timestamp,
    events: Vec<PodEvent>,
    needs_objects: bool,
    is_blocked: bool,
}

impl PodLifecycle<'_> {
    fn finish(self, wake_at: Option<Timestamp>) -> Step {
        Step {
            status: self.status,
            events: self.events,
            wake_at,
            remove: false,
            needs_objects: self.needs_objects,
            is_blocked: self.is_blocked,
        }
    }

    /// Admits the pod: all containers are waiting.
    fn admit(mut self) -> Step {
        let addresses = self.around.addresses;
        self.status.phase = Some("Pending".to_owned());
        self.status.start_time = Some(Time(self.now));
        self.status.host_ip = Some(addresses.host_ip.clone());
        self.status.host_ips = Some(vec![HostIP { ip: addresses.host_ip.clone() }]);
        let inits = self.spec.init_containers.clone().unwrap_or_default();
        let reason = if inits.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        self.status.container_statuses = Some(waiting_all(&self.spec.containers, reason));
        if !inits.is_empty() {
            self.status.init_container_statuses = Some(waiting_all(&inits, "PodInitializing"));
        }
        self.update_conditions();
        let wake_at = Some(self.now);
        self.finish(wake_at)
    }

    /// Checks the deadline, mounts the volumes, assigns the address, and runs the containers.
    fn run(mut self) -> Step {
        let deadline = self.deadline();
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            return self.fail_for_deadline();
        }
        if !self.mount() {
            self.update_conditions();
            return self.finish(deadline);
        }
        let addresses = self.around.addresses;
        let address = if self.spec.host_network == Some(true) {
            Some(addresses.host_ip.clone())
        } else {
            addresses.pod_ip.clone()
        };
        if self.status.pod_ip.is_none()
            && let Some(ip) = address
        {
            self.status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
            self.status.pod_ip = Some(ip);
        }
        self.run_containers(deadline)
    }

    fn main_statuses(&self) -> &[ContainerStatus] {
        self.status.container_statuses.as_deref().unwrap_or_default()
    }

    fn script(&self, name: &str) -> ContainerScript {
        ContainerScript::read(self.pod.metadata.annotations.as_ref(), name)
    }

    fn phase(&self, initialised: bool) -> &'static str {
        let inits = self.spec.init_containers.iter().flatten();
        let mut inits = inits.zip(self.status.init_container_statuses.iter().flatten());
        let failed_init = inits.any(|(init, status)| {
            exit_code(status)
                .is_some_and(|code| code != 0 && !Restart::of_init(&self.spec, init).applies(code))
        });
        if failed_init {
            return "Failed";
        }
        if !initialised {
            return "Pending";
        }
        let exits: Vec<Option<i32>> = self.main_statuses().iter().map(exit_code).collect();
        let restart = |name: &str| {
            let spec = self.spec.containers.iter().find(|main| main.name == name);
            spec.map_or(Restart::NEVER, |spec| Restart::of_main(&self.spec, spec))
        };
        let is_done = |status: &ContainerStatus| {
            exit_code(status).is_some_and(|code| !restart(&status.name).applies(code))
        };
        if self.main_statuses().iter().all(is_done) {
            return if exits.iter().all(|exit| *exit == Some(0)) { "Succeeded" } else { "Failed" };
        }
        if self.main_statuses().iter().any(has_begun) { "Running" } else { "Pending" }
    }

    /// Derives the conditions from the states of the containers.
    fn update_conditions(&mut self) {
        let generation = self.pod.metadata.generation;
        self.status.observed_generation = generation;
        let next = readiness::conditions(&self.status, &self.spec);
        let conditions = self.status.conditions.get_or_insert_default();
        for condition in next {
            let condition = PodCondition { observed_generation: generation, ..condition };
            crate::conditions::set(conditions, condition, &Time(self.now));
        }
    }
}

fn waiting_all(specs: &[ContainerSpec], reason: &str) -> Vec<ContainerStatus> {
    specs
        .iter()
        .map(|spec| waiting(spec.name.clone(), spec.image.clone().unwrap_or_default(), reason))
        .collect()
}

fn waiting(name: String, image: String, reason: &str) -> ContainerStatus {
    ContainerStatus {
        name,
        image,
        started: Some(false),
        state: Some(waiting_for(reason, None)),
        ..ContainerStatus::default()
    }
}

/// Returns whether a container has started at least once.
fn has_begun(status: &ContainerStatus) -> bool {
    status.container_id.is_some()
}

/// Returns the exit code of a terminated container.
pub(super) fn exit_code(status: &ContainerStatus) -> Option<i32> {
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

#[cfg(test)]
mod tests;
