//! The state machine of a real pod: volumes, sandbox, containers in their order, and the end.
//!
//! As `lifecycle` for simulated pods: takes the object, the observations and the time, and returns the next status and the actions.
//! The status follows from the memory alone, so that no status shows a process that is not there.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, Pod, PodSpec, PodStatus, Volume};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::ResourceExt;
use windlass_node::ContainerId;
use windlass_runtime::events::EventType;

use super::action::{Action, Observation, RealStep};
use super::container::{ContainerMemory, Ended, Output, State, Surroundings};
use super::memory::{Part, RealMemory};
use super::roles::{as_container, find_container, is_terminal};
use super::running::Running;
use super::status;
use crate::kubelet::container::earlier;
use crate::kubelet::lifecycle::PodAddresses;
use crate::kubelet::resolve::MountError;
use crate::kubelet::restart::{Restart, is_sidecar};

/// The first and the longest pause before volumes are mounted again.
const MOUNT_AGAIN: Duration = Duration::from_millis(500);
const MOUNT_AGAIN_AT_MOST: Duration = Duration::from_mins(2);
/// The pause before a sandbox is created again.
const SANDBOX_AGAIN: Duration = Duration::from_secs(10);
/// The first and the longest pause before a sandbox is removed again.
const REMOVE_AGAIN: Duration = Duration::from_secs(1);
const REMOVE_AGAIN_AT_MOST: Duration = Duration::from_secs(10);
const SANDBOX_CHANGED: &str = "Pod sandbox changed, it will be killed and re-created.";
const DEADLINE_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

/// Performs all transitions that are due.
pub(crate) fn advance(
    pod: &Pod,
    addresses: &PodAddresses,
    scheme: &str,
    memory: &mut RealMemory,
    observations: Vec<Observation>,
    now: Timestamp,
) -> RealStep {
    let spec = pod.spec.clone().unwrap_or_default();
    let title = format!(
        "{}_{}({})",
        pod.name_any(),
        pod.namespace().unwrap_or_default(),
        pod.uid().unwrap_or_default()
    );
    let grace = spec.termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let machine = PodMachine {
        ephemerals: spec.ephemeral_containers.iter().flatten().filter_map(as_container).collect(),
        grace: Duration::from_secs(grace.unwrap_or(30)),
        pod,
        spec,
        title,
        addresses,
        scheme,
        memory,
        now,
        out: Output::default(),
    };
    machine.advance(observations)
}

struct PodMachine<'a> {
    pod: &'a Pod,
    spec: PodSpec,
    ephemerals: Vec<ContainerSpec>,
    /// `NAME_NAMESPACE(UID)`.
    title: String,
    grace: Duration,
    addresses: &'a PodAddresses,
    scheme: &'a str,
    memory: &'a mut RealMemory,
    now: Timestamp,
    out: Output,
}

impl PodMachine<'_> {
    fn advance(mut self, observations: Vec<Observation>) -> RealStep {
        self.adopt();
        observations.into_iter().for_each(|observation| self.observe(observation));
        let before = self.pod.status.clone().unwrap_or_default();
        if self.pod.metadata.deletion_timestamp.is_some() {
            return self.terminate(before);
        }
        if is_terminal(&before) {
            // An eviction ends a pod whose containers run.
            self.stop_all(self.grace);
            self.remove_sandbox();
            return self.finish(before, false);
        }
        if before.start_time.is_none() {
            self.out.wake(self.now);
        } else {
            self.run(&before);
        }
        let next = self.status(before);
        if is_terminal(&next) {
            self.remove_sandbox();
        }
        self.finish(next, false)
    }

    fn finish(self, status: PodStatus, remove: bool) -> RealStep {
        let Output { actions, events, wake_at } = self.out;
        RealStep { status, actions, events, wake_at, remove }
    }

    fn status(&self, before: PodStatus) -> PodStatus {
        status::Renderer {
            pod: self.pod,
            spec: &self.spec,
            ephemerals: &self.ephemerals,
            title: &self.title,
            addresses: self.addresses,
            scheme: self.scheme,
            memory: self.memory,
            now: self.now,
        }
        .status(before)
    }

    /// Takes over the containers that an earlier kubelet has left in the status. Their processes are gone.
    fn adopt(&mut self) {
        if std::mem::replace(&mut self.memory.is_adopted, true) {
            return;
        }
        let Some(status) = &self.pod.status else { return };
        for old in status.container_statuses.iter().flatten().filter(|old| old.container_id.is_some()) {
            let terminated = old.state.as_ref().and_then(|state| state.terminated.as_ref());
            let ended = Ended::adopted(terminated, self.now);
            let restarts = u32::try_from(old.restart_count).unwrap_or_default();
            self.memory.containers.insert(old.name.clone(), ContainerMemory::left_behind(restarts, ended));
        }
    }

    fn observe(&mut self, observation: Observation) {
        let now = self.now;
        match observation {
            Observation::Volumes(Ok(refresh_at)) => {
                self.memory.volumes = Part::Ready;
                self.memory.is_refreshing = false;
                self.memory.refresh_at = earlier(self.memory.refresh_at, refresh_at);
            }
            Observation::Volumes(Err(error)) => self.volumes_failed(&error),
            Observation::ObjectsChanged => self.objects_changed(),
            Observation::Sandbox(Ok(())) => {
                if matches!(self.memory.sandbox, Part::Busy { .. }) {
                    self.memory.sandbox = Part::Ready;
                }
            }
            Observation::Sandbox(Err(why)) => {
                let text = format!("Failed to create pod sandbox: {why}");
                self.out.event(EventType::Warning, "FailedCreatePodSandBox", text);
                self.memory.sandbox = self.memory.sandbox.failed(SANDBOX_AGAIN, SANDBOX_AGAIN, now);
            }
            Observation::SandboxRemoved(Ok(())) => self.memory.sandbox = Part::Removed,
            Observation::SandboxRemoved(Err(why)) => {
                self.out.event(EventType::Warning, "FailedKillPod", format!("error killing pod: {why}"));
                self.memory.sandbox = self.memory.sandbox.failed(REMOVE_AGAIN, REMOVE_AGAIN_AT_MOST, now);
            }
            Observation::Found { container, outcome } => {
                self.of_name(&container, |memory, around, out| memory.found(around, outcome, out));
            }
            Observation::Pulled { container, outcome, took } => {
                self.of_name(&container, |memory, around, out| memory.pulled(around, outcome, took, out));
            }
            Observation::Started { container, outcome } => {
                self.of_name(&container, |memory, around, out| memory.started(around, outcome, out));
            }
            Observation::SandboxEnded { container } => self.sandbox_ended(&container),
            Observation::PostStarted { id, outcome } => {
                self.of_id(&id, |running, around, out| running.post_started(around, outcome, out));
            }
            Observation::PreStopped { id, outcome } => {
                self.of_id(&id, |running, around, out| running.pre_stopped(around, outcome, out));
            }
            Observation::Checked { id, kind, outcome } => {
                self.of_id(&id, |running, around, out| running.checked(around, kind, outcome, out));
            }
            Observation::Exited { id, exit, message } => {
                if let Some(name) = self.name_of(&id) {
                    self.of_name(&name, |memory, _, _| memory.exited(&exit, message, now));
                }
            }
        }
    }

    /// Replaces a sandbox that has ended by itself, with all containers. The init containers run again.
    fn sandbox_ended(&mut self, container: &str) {
        if let Some(memory) = self.memory.containers.get_mut(container) {
            memory.wait_for_sandbox();
        }
        if self.memory.sandbox != Part::Ready || self.is_ending() {
            return;
        }
        self.out.event(EventType::Normal, "SandboxChanged", SANDBOX_CHANGED.to_owned());
        self.memory.sandbox = Part::Failed { failures: 0, retry_at: self.now };
        self.memory.is_initialised = false;
        for init in self.spec.init_containers.iter().flatten().filter(|init| !is_sidecar(init)) {
            if let Some(memory) = self.memory.containers.get_mut(&init.name) {
                memory.begin_anew(&mut self.out);
            }
        }
    }

    fn volumes_failed(&mut self, error: &MountError) {
        self.out.event(EventType::Warning, "FailedMount", error.to_string());
        if self.memory.volumes == Part::Ready {
            // The files of the last write stay.
            self.memory.is_refreshing = false;
            let again = self.now.checked_add(SANDBOX_AGAIN).unwrap_or(self.now);
            self.memory.refresh_at = earlier(self.memory.refresh_at, Some(again));
        } else {
            self.memory.volumes = self.memory.volumes.failed(MOUNT_AGAIN, MOUNT_AGAIN_AT_MOST, self.now);
        }
    }

    fn objects_changed(&mut self) {
        match &mut self.memory.volumes {
            Part::Failed { retry_at, .. } => *retry_at = self.now,
            _ => self.memory.refresh_at = Some(self.now),
        }
        self.memory.containers.values_mut().for_each(|container| container.objects_changed(self.now));
    }

    /// Calls `apply` with the container of this name.
    fn of_name(
        &mut self,
        name: &str,
        apply: impl FnOnce(&mut ContainerMemory, Surroundings<'_>, &mut Output),
    ) {
        let Some(spec) = find_container(&self.spec, name) else { return };
        let around = Surroundings {
            spec: &spec,
            pod: &self.title,
            restart: self.restart(&spec),
            grace: self.grace,
            is_ending: self.is_ending(),
            now: self.now,
        };
        let memory = self.memory.containers.entry(name.to_owned()).or_default();
        let earlier = self.out.events.len();
        apply(memory, around, &mut self.out);
        for event in &mut self.out.events[earlier..] {
            event.container = Some(name.to_owned());
        }
    }

    /// Calls `apply` with the running container of this ID. Does nothing if the container has ended.
    fn of_id(&mut self, id: &ContainerId, apply: impl FnOnce(&mut Running, Surroundings<'_>, &mut Output)) {
        let Some(name) = self.name_of(id) else { return };
        self.of_name(&name, |memory, around, out| {
            if let State::Running(running) = &mut memory.state {
                apply(running, around, out);
            }
        });
    }

    fn name_of(&self, id: &ContainerId) -> Option<String> {
        let is_it = |memory: &ContainerMemory| memory.running().is_some_and(|running| running.id == *id);
        let found = self.memory.containers.iter().find(|(_, memory)| is_it(memory));
        found.map(|(name, _)| name.clone())
    }

    /// Returns the restarts of a container of any sort.
    fn restart<'a>(&self, container: &'a ContainerSpec) -> Restart<'a> {
        let has = |containers: &[ContainerSpec]| containers.iter().any(|known| known.name == container.name);
        if has(&self.spec.containers) {
            return Restart::of_main(&self.spec, container);
        }
        let is_init = self.spec.init_containers.as_deref().is_some_and(has);
        if is_init { Restart::of_init(&self.spec, container) } else { Restart::NEVER }
    }

    fn run(&mut self, before: &PodStatus) {
        let limit = self.spec.active_deadline_seconds.map(SignedDuration::from_secs);
        let started = before.start_time.as_ref().map(|time| time.0);
        let deadline = limit.zip(started).and_then(|(limit, started)| started.checked_add(limit).ok());
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            if !std::mem::replace(&mut self.memory.is_overdue, true) {
                self.out.event(EventType::Normal, "DeadlineExceeded", DEADLINE_MESSAGE.to_owned());
            }
            return self.stop_all(self.grace);
        }
        if let Some(deadline) = deadline {
            self.out.wake(deadline);
        }
        if self.mount() && self.ensure_sandbox() {
            self.run_containers();
        }
    }

    /// Writes the volumes when necessary. Returns whether all are there.
    fn mount(&mut self) -> bool {
        if let Some(failures) = self.memory.volumes.is_due(self.now, &mut self.out) {
            self.memory.volumes = Part::Busy { failures };
            self.prepare_volumes();
        }
        if self.memory.volumes != Part::Ready {
            return false;
        }
        if self.memory.metadata != self.metadata() {
            self.memory.refresh_at = Some(self.now);
        }
        match self.memory.refresh_at {
            // The result of the write that is under way comes first.
            Some(_) if self.memory.is_refreshing => {}
            Some(refresh_at) if refresh_at <= self.now => {
                self.memory.refresh_at = None;
                self.memory.is_refreshing = true;
                self.prepare_volumes();
            }
            Some(refresh_at) => self.out.wake(refresh_at),
            None => {}
        }
        true
    }

    fn prepare_volumes(&mut self) {
        self.memory.metadata = self.metadata();
        self.out.actions.push(Action::PrepareVolumes);
    }

    /// Returns a digest of the labels and annotations, if a volume may show the labels or annotations.
    fn metadata(&self) -> Option<u64> {
        let shows = |volume: &Volume| {
            let mut sources =
                volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
            volume.downward_api.is_some() || sources.any(|source| source.downward_api.is_some())
        };
        self.spec.volumes.iter().flatten().any(shows).then(|| {
            let mut hasher = DefaultHasher::new();
            (&self.pod.metadata.labels, &self.pod.metadata.annotations).hash(&mut hasher);
            hasher.finish()
        })
    }

    fn ensure_sandbox(&mut self) -> bool {
        if let Some(failures) = self.memory.sandbox.is_due(self.now, &mut self.out) {
            self.memory.sandbox = Part::Busy { failures };
            self.out.actions.push(Action::CreateSandbox);
        }
        self.memory.sandbox == Part::Ready
    }

    fn run_containers(&mut self) {
        // First of all: a sidecar that has been stopped with the pod does not start again.
        if self.is_complete() {
            return self.stop_all(self.grace);
        }
        let inits = self.spec.init_containers.clone().unwrap_or_default();
        let mut through = true;
        for init in &inits {
            let is_sidecar = is_sidecar(init);
            // After the first time, only sidecars run.
            if self.memory.is_initialised && !is_sidecar {
                continue;
            }
            self.of_name(&init.name, ContainerMemory::advance);
            let memory = self.memory.containers.get(&init.name);
            let done = if is_sidecar {
                memory.is_some_and(|memory| memory.has_started(init))
            } else {
                memory.and_then(ContainerMemory::ended).is_some_and(|ended| ended.exit_code == 0)
            };
            if !done && !self.memory.is_initialised {
                through = false;
                break;
            }
        }
        self.memory.is_initialised |= through;
        if self.memory.is_initialised {
            for main in self.spec.containers.clone() {
                self.of_name(&main.name, ContainerMemory::advance);
            }
        }
        for ephemeral in self.ephemerals.clone() {
            self.of_name(&ephemeral.name, ContainerMemory::advance);
        }
    }

    /// Returns whether no container of the pod will run again, except sidecars.
    fn is_complete(&self) -> bool {
        let is_done = |name: &str, restart: Restart<'_>| {
            self.memory.containers.get(name).is_some_and(|memory| memory.is_done(restart))
        };
        let inits = self.spec.init_containers.iter().flatten().filter(|init| !is_sidecar(init));
        let init_failed = inits.into_iter().any(|init| {
            let memory = self.memory.containers.get(&init.name);
            let failed = memory.and_then(ContainerMemory::ended).is_some_and(|ended| ended.exit_code != 0);
            failed && is_done(&init.name, Restart::of_init(&self.spec, init))
        });
        let mut mains = self.spec.containers.iter();
        init_failed || mains.all(|main| is_done(&main.name, Restart::of_main(&self.spec, main)))
    }

    /// Stops all containers: the main containers first, then the sidecars in reverse order.
    fn stop_all(&mut self, grace: Duration) {
        let deadline = self.now.checked_add(grace).unwrap_or(Timestamp::MAX);
        let deadline = *self.memory.stopping_until.get_or_insert(deadline);
        self.stop_by(deadline);
    }

    fn stop_by(&mut self, deadline: Timestamp) {
        let mains = self.spec.containers.iter().chain(&self.ephemerals).map(|main| main.name.clone());
        for name in mains.collect::<Vec<_>>() {
            self.stop_one(&name, deadline);
        }
        let inits = self.spec.init_containers.iter().flatten().rev().map(|init| init.name.clone());
        for name in inits.collect::<Vec<_>>() {
            // A sidecar runs until the main containers have ended, but not beyond the deadline.
            if self.is_running_any() && deadline > self.now && !self.is_last_running(&name) {
                break;
            }
            self.stop_one(&name, deadline);
        }
    }

    fn stop_one(&mut self, name: &str, deadline: Timestamp) {
        self.of_name(name, |memory, around, out| memory.stop(around, deadline, out));
    }

    fn is_running_any(&self) -> bool {
        self.memory.containers.values().any(|memory| memory.running().is_some())
    }

    /// Returns whether no container runs that must end before this init container.
    fn is_last_running(&self, name: &str) -> bool {
        let inits = self.spec.init_containers.iter().flatten().map(|init| init.name.as_str());
        let earlier: Vec<&str> = inits.take_while(|init| *init != name).chain([name]).collect();
        let mut running = self.memory.containers.iter().filter(|(_, memory)| memory.running().is_some());
        running.all(|(other, _)| earlier.contains(&other.as_str()))
    }

    /// Returns whether the pod is deleted, or its containers are being stopped: the pod is complete, or beyond the deadline.
    fn is_ending(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
            || self.memory.stopping_until.is_some()
            || self.pod.status.as_ref().is_some_and(is_terminal)
    }

    /// Returns whether no process runs or is being started.
    fn is_stopped(&self) -> bool {
        !self.memory.containers.values().any(|memory| memory.running().is_some() || memory.is_starting())
    }

    fn remove_sandbox(&mut self) {
        if self.is_stopped()
            && let Some(failures) = self.memory.sandbox.is_removal_due(self.now, &mut self.out)
        {
            self.memory.sandbox = Part::Removing { failures };
            self.out.actions.push(Action::RemoveSandbox);
        }
    }

    /// Terminates the pod: stops the containers within the grace period, removes the sandbox, then lets the object be deleted.
    fn terminate(mut self, before: PodStatus) -> RealStep {
        let killed_at = self.pod.metadata.deletion_timestamp.as_ref().map_or(self.now, |time| time.0);
        self.stop_by(killed_at);
        self.remove_sandbox();
        let is_gone = self.memory.sandbox == Part::Removed;
        let status = self.status(before);
        self.finish(status, is_gone)
    }
}
