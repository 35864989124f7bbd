//! The state machine of a simulated pod: takes the object, the annotations and the time, and returns the next status.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container as ContainerSpec, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use windlass_runtime::events::EventType;

use super::choice::Simulation;
use super::container::{
    Container, ContainerChange, ExactTimes, RestartPolicy, earlier, not_before, waiting_for,
};
use super::readiness;
use super::script::ContainerScript;

/// The run time of a container whose restart policy is not `Always`.
const TASK: Duration = Duration::from_secs(1);

/// The state of a pod beside the object. Without the state, only times are less precise.
#[derive(Clone, Debug, Default)]
pub(super) struct PodMemory {
    times: BTreeMap<String, ExactTimes>,
    stopping_since: Option<Timestamp>,
    /// Why no program runs.
    simulation: Simulation,
}

impl PodMemory {
    /// Returns the memory of a new pod.
    pub(super) fn of(simulation: Simulation) -> Self {
        Self { simulation, ..Self::default() }
    }
}

/// An Event to record about the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodEvent {
    pub kind: EventType,
    pub reason: &'static str,
    pub message: String,
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
}

/// The addresses that the node gives to a pod.
#[derive(Clone, Debug)]
pub(super) struct PodAddresses {
    pub host_ip: String,
    /// The pod's own address.
    pub pod_ip: Option<String>,
}

/// Computes the next step of a pod.
pub(super) fn advance(pod: &Pod, addresses: &PodAddresses, memory: &mut PodMemory, now: Timestamp) -> Step {
    let status = pod.status.clone().unwrap_or_default();
    let lifecycle = PodLifecycle {
        pod,
        spec: pod.spec.clone().unwrap_or_default(),
        status,
        memory,
        now,
        events: Vec::new(),
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return lifecycle.terminate();
    }
    if matches!(lifecycle.status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return lifecycle.finish(None);
    }
    if lifecycle.status.start_time.is_none() {
        return lifecycle.admit(addresses);
    }
    lifecycle.run(addresses)
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
    let event = PodEvent { kind: EventType::Warning, reason, message: message.to_owned() };
    Step { status, events: vec![event], wake_at: None, remove: false }
}

struct PodLifecycle<'a> {
    pod: &'a Pod,
    spec: PodSpec,
    status: PodStatus,
    memory: &'a mut PodMemory,
    now: Timestamp,
    events: Vec<PodEvent>,
}

impl PodLifecycle<'_> {
    fn finish(self, wake_at: Option<Timestamp>) -> Step {
        Step { status: self.status, events: self.events, wake_at, remove: false }
    }

    /// Admits the pod: all containers are waiting.
    fn admit(mut self, addresses: &PodAddresses) -> Step {
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

    /// Assigns the address, checks the deadline, and runs the containers.
    fn run(mut self, addresses: &PodAddresses) -> Step {
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
        let deadline = self.deadline();
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            return self.fail_for_deadline();
        }
        self.run_containers(deadline)
    }

    fn run_containers(mut self, mut wake_at: Option<Timestamp>) -> Step {
        let (initialised, due) = self.run_init_containers();
        wake_at = earlier(wake_at, due);
        if initialised {
            wake_at = earlier(wake_at, self.run_main_containers());
        }
        wake_at = earlier(wake_at, self.run_ephemeral_containers());
        let phase = self.phase(initialised);
        if matches!(phase, "Succeeded" | "Failed") {
            self.stop_sidecars();
            wake_at = None;
        }
        self.status.phase = Some(phase.to_owned());
        self.update_conditions();
        self.finish(wake_at)
    }

    /// Runs the init containers in order. Returns whether all have completed, and when the next transition is due.
    fn run_init_containers(&mut self) -> (bool, Option<Timestamp>) {
        let specs = self.spec.init_containers.clone().unwrap_or_default();
        let mut statuses = self.status.init_container_statuses.take().unwrap_or_default();
        let mut wake_at = None;
        let mut through = true;
        for (spec, status) in specs.iter().zip(&mut statuses) {
            let sidecar = spec.restart_policy.as_deref() == Some("Always");
            let mut script = self.script(&spec.name).with_command(spec);
            if !sidecar && !script.endless {
                script.run_for = script.run_for.or(Some(Duration::ZERO));
            }
            // An init container is restarted only after a failure.
            let restart = match RestartPolicy::of(self.spec.restart_policy.as_deref()) {
                _ if sidecar => RestartPolicy::Always,
                RestartPolicy::Never => RestartPolicy::Never,
                RestartPolicy::Always | RestartPolicy::OnFailure => RestartPolicy::OnFailure,
            };
            wake_at = earlier(wake_at, self.advance_container(&script, restart, status));
            let exit = exit_code(status);
            if !sidecar {
                status.ready = exit == Some(0);
                status.started = Some(false);
            }
            if exit != Some(0) && !(sidecar && status.started == Some(true)) {
                through = false;
                break;
            }
        }
        if !specs.is_empty() {
            self.status.init_container_statuses = Some(statuses);
        }
        (through, wake_at)
    }

    fn run_main_containers(&mut self) -> Option<Timestamp> {
        let restart = RestartPolicy::of(self.spec.restart_policy.as_deref());
        let specs = self.spec.containers.clone();
        let mut statuses = self.status.container_statuses.take().unwrap_or_default();
        let mut wake_at = None;
        for status in &mut statuses {
            let spec = specs.iter().find(|container| container.name == status.name);
            let mut script = self.script(&status.name);
            if let Some(spec) = spec {
                script = script.with_command(spec);
            }
            if restart != RestartPolicy::Always && !script.endless {
                script.run_for = script.run_for.or(Some(TASK));
            }
            wake_at = earlier(wake_at, self.advance_container(&script, restart, status));
            // A resize takes effect at once.
            if status.state.as_ref().is_some_and(|state| state.running.is_some()) {
                status.resources = spec.map(|container| container.resources.clone().unwrap_or_default());
            }
        }
        self.status.container_statuses = Some(statuses);
        wake_at
    }

    fn run_ephemeral_containers(&mut self) -> Option<Timestamp> {
        let specs = self.spec.ephemeral_containers.clone().unwrap_or_default();
        let mut statuses = self.status.ephemeral_container_statuses.take().unwrap_or_default();
        let mut wake_at = None;
        for spec in &specs {
            if !statuses.iter().any(|status| status.name == spec.name) {
                let image = spec.image.clone().unwrap_or_default();
                statuses.push(waiting(spec.name.clone(), image, "ContainerCreating"));
            }
        }
        for status in &mut statuses {
            let script = self.script(&status.name);
            wake_at = earlier(wake_at, self.advance_container(&script, RestartPolicy::Never, status));
            status.ready = false;
        }
        self.status.ephemeral_container_statuses = (!statuses.is_empty()).then_some(statuses);
        wake_at
    }

    /// Applies all transitions of a container that are due now.
    fn advance_container(
        &mut self,
        script: &ContainerScript,
        restart: RestartPolicy,
        status: &mut ContainerStatus,
    ) -> Option<Timestamp> {
        let times = self.memory.times.entry(status.name.clone()).or_default();
        let mut container = Container { script, restart, status, times };
        // Bounded: a container that ends and restarts at once has a transition due at all times.
        for _ in 0..4 {
            match container.advance(self.now) {
                Ok(change) => {
                    let simulation = self.memory.simulation;
                    self.events.extend(pod_events(&change, container.status, script, simulation));
                }
                Err(wake_at) => return wake_at,
            }
        }
        Some(self.now)
    }

    /// Returns when `activeDeadlineSeconds` ends.
    fn deadline(&self) -> Option<Timestamp> {
        let limit = SignedDuration::from_secs(self.spec.active_deadline_seconds?);
        self.status.start_time.as_ref()?.0.checked_add(limit).ok()
    }

    fn fail_for_deadline(mut self) -> Step {
        self.stop_all(137);
        self.status.phase = Some("Failed".to_owned());
        self.status.reason = Some("DeadlineExceeded".to_owned());
        self.status.message =
            Some("Pod was active on the node longer than the specified deadline".to_owned());
        self.update_conditions();
        self.finish(None)
    }

    /// Terminates the pod: stops the containers within the grace period, then allows the object to be deleted.
    fn terminate(mut self) -> Step {
        let first_look = self.memory.stopping_since.is_none();
        let since = *self.memory.stopping_since.get_or_insert(self.now);
        let running = self.running();
        if first_look {
            self.events.extend(running.iter().map(|name| PodEvent {
                kind: EventType::Normal,
                reason: "Killing",
                message: format!("Stopping container {name}"),
            }));
        }
        let needs = running.iter().map(|name| self.script(name).stop_after).max().unwrap_or_default();
        let killed_at = self.pod.metadata.deletion_timestamp.as_ref().map_or(self.now, |time| time.0);
        let due = match not_before(since, needs, self.now) {
            Ok(()) => None,
            Err(stopped) => earlier(stopped, Some(killed_at)).filter(|due| *due > self.now),
        };
        if due.is_some() {
            return self.finish(due);
        }
        let in_time = since.checked_add(SignedDuration::try_from(needs).unwrap_or(SignedDuration::MAX));
        let in_time = in_time.is_ok_and(|stopped| stopped <= self.now);
        self.stop_all(if in_time { 0 } else { 137 });
        if !matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed")) {
            let clean = self.main_statuses().iter().all(|status| exit_code(status) == Some(0));
            self.status.phase = Some(if clean { "Succeeded" } else { "Failed" }.to_owned());
        }
        self.update_conditions();
        Step { status: self.status, events: self.events, wake_at: None, remove: true }
    }

    fn stop_all(&mut self, exit_code: i32) {
        let mut lists = [
            self.status.init_container_statuses.take(),
            self.status.container_statuses.take(),
            self.status.ephemeral_container_statuses.take(),
        ];
        for status in lists.iter_mut().flatten().flatten() {
            let script = self.script(&status.name);
            let times = self.memory.times.entry(status.name.clone()).or_default();
            Container { script: &script, restart: RestartPolicy::Never, status, times }
                .stop(exit_code, self.now);
        }
        let [inits, mains, ephemerals] = lists;
        self.status.init_container_statuses = inits;
        self.status.container_statuses = mains;
        self.status.ephemeral_container_statuses = ephemerals;
    }

    /// Stops the init containers that still run: sidecars end with the main containers.
    fn stop_sidecars(&mut self) {
        let mut statuses = self.status.init_container_statuses.take();
        let is_running = |status: &&mut ContainerStatus| {
            status.state.as_ref().is_some_and(|state| state.running.is_some())
        };
        for status in statuses.iter_mut().flatten().filter(is_running) {
            let script = self.script(&status.name);
            let times = self.memory.times.entry(status.name.clone()).or_default();
            Container { script: &script, restart: RestartPolicy::Never, status, times }.stop(0, self.now);
        }
        self.status.init_container_statuses = statuses;
    }

    fn running(&self) -> Vec<String> {
        let inits = self.status.init_container_statuses.iter().flatten();
        inits
            .chain(self.main_statuses())
            .filter(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()))
            .map(|status| status.name.clone())
            .collect()
    }

    fn main_statuses(&self) -> &[ContainerStatus] {
        self.status.container_statuses.as_deref().unwrap_or_default()
    }

    fn script(&self, name: &str) -> ContainerScript {
        ContainerScript::read(self.pod.metadata.annotations.as_ref(), name)
    }

    fn phase(&self, initialised: bool) -> &'static str {
        let restart = RestartPolicy::of(self.spec.restart_policy.as_deref());
        let failed_init =
            self.status.init_container_statuses.iter().flatten().any(|status| {
                exit_code(status).is_some_and(|code| code != 0 && restart == RestartPolicy::Never)
            });
        if failed_init {
            return "Failed";
        }
        if !initialised {
            return "Pending";
        }
        let exits: Vec<Option<i32>> = self.main_statuses().iter().map(exit_code).collect();
        if exits.iter().all(|exit| exit.is_some_and(|code| !restart.applies(code))) {
            return if exits.iter().all(|exit| *exit == Some(0)) { "Succeeded" } else { "Failed" };
        }
        let began = |status: &ContainerStatus| status.container_id.is_some();
        if self.main_statuses().iter().any(began) { "Running" } else { "Pending" }
    }

    /// Derives the conditions from the states of the containers.
    fn update_conditions(&mut self) {
        let generation = self.pod.metadata.generation;
        self.status.observed_generation = generation;
        let gates = self.spec.readiness_gates.iter().flatten().map(|gate| gate.condition_type.as_str());
        let next = readiness::conditions(&self.status, &gates.collect::<Vec<_>>());
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

/// Returns the exit code of a terminated container.
pub(super) fn exit_code(status: &ContainerStatus) -> Option<i32> {
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

fn pod_events(
    change: &ContainerChange,
    status: &ContainerStatus,
    script: &ContainerScript,
    simulation: Simulation,
) -> Vec<PodEvent> {
    let event = |kind, reason, message| PodEvent { kind, reason, message };
    let (name, image) = (&status.name, &status.image);
    let pulled = if script.is_known {
        ("Pulled", format!("Container image {image:?} already present on machine"))
    } else {
        ("Simulated", simulation.message(image))
    };
    match change {
        ContainerChange::Started => vec![
            event(EventType::Normal, pulled.0, pulled.1),
            event(EventType::Normal, "Created", format!("Created container: {name}")),
            event(EventType::Normal, "Started", format!("Started container {name}")),
        ],
        ContainerChange::PullFailed => vec![
            event(EventType::Warning, "Failed", format!("Failed to pull image {image:?}")),
            event(EventType::Warning, "Failed", "Error: ErrImagePull".to_owned()),
        ],
        ContainerChange::BackedOff => {
            vec![event(EventType::Warning, "BackOff", format!("Back-off restarting failed container {name}"))]
        }
        ContainerChange::Ended | ContainerChange::Restarting => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
