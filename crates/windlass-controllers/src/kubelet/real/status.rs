//! The status of a real pod, derived from the state of the containers.

use k8s_openapi::api::core::v1::{
    Container as ContainerSpec, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::container::{ContainerMemory, Ended, State, image_of};
use super::memory::{Part, RealMemory};
use super::roles::is_terminal;
use crate::kubelet::container::{go_seconds, waiting_for};
use crate::kubelet::lifecycle::PodAddresses;
use crate::kubelet::readiness;
use crate::kubelet::restart::{Restart, is_sidecar};

/// Renders the status of a pod.
pub(super) struct Renderer<'a> {
    pub pod: &'a Pod,
    pub spec: &'a PodSpec,
    pub ephemerals: &'a [ContainerSpec],
    /// `NAME_NAMESPACE(UID)`.
    pub title: &'a str,
    pub addresses: &'a PodAddresses,
    pub scheme: &'a str,
    pub memory: &'a RealMemory,
    pub now: Timestamp,
}

impl Renderer<'_> {
    /// Returns the next status. Conditions that the kubelet does not manage are kept.
    pub(super) fn status(&self, before: PodStatus) -> PodStatus {
        let mut status = before;
        status.start_time.get_or_insert(Time(self.now));
        let host = &self.addresses.host_ip;
        status.host_ip = Some(host.clone());
        status.host_ips = Some(vec![HostIP { ip: host.clone() }]);
        let has_sandbox = matches!(
            self.memory.sandbox,
            Part::Ready | Part::Removing { .. } | Part::NotRemoved { .. } | Part::Removed
        );
        if has_sandbox
            && status.pod_ip.is_none()
            && let Some(ip) = self.address()
        {
            status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
            status.pod_ip = Some(ip);
        }
        let inits = self.spec.init_containers.as_deref().unwrap_or_default();
        let waiting = if inits.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        status.container_statuses =
            Some(self.spec.containers.iter().map(|main| self.main(main, waiting)).collect());
        status.init_container_statuses =
            (!inits.is_empty()).then(|| inits.iter().map(|init| self.init(init)).collect());
        status.ephemeral_container_statuses = (!self.ephemerals.is_empty())
            .then(|| self.ephemerals.iter().map(|container| self.ephemeral(container)).collect());
        if !is_terminal(&status) {
            self.set_phase(&mut status);
        }
        self.set_conditions(&mut status);
        status
    }

    fn address(&self) -> Option<String> {
        if self.spec.host_network == Some(true) {
            return Some(self.addresses.host_ip.clone());
        }
        self.addresses.pod_ip.clone()
    }

    fn main(&self, spec: &ContainerSpec, waiting: &str) -> ContainerStatus {
        // After the init containers, a container that waits is being created.
        let waiting = if self.memory.is_initialised { "ContainerCreating" } else { waiting };
        self.container(spec, Restart::of_main(self.spec, spec), waiting)
    }

    fn init(&self, spec: &ContainerSpec) -> ContainerStatus {
        let restart = Restart::of_init(self.spec, spec);
        let mut status = self.container(spec, restart, "PodInitializing");
        if !is_sidecar(spec) {
            let memory = self.memory.containers.get(&spec.name);
            status.ready = memory.and_then(ContainerMemory::ended).is_some_and(|ended| ended.exit_code == 0);
            status.started = Some(false);
        }
        status
    }

    fn ephemeral(&self, spec: &ContainerSpec) -> ContainerStatus {
        let mut status = self.container(spec, Restart::NEVER, "ContainerCreating");
        status.ready = false;
        status
    }

    fn container(&self, spec: &ContainerSpec, restart: Restart<'_>, waiting: &str) -> ContainerStatus {
        let fresh = ContainerMemory::default();
        let memory = self.memory.containers.get(&spec.name).unwrap_or(&fresh);
        let id = match &memory.state {
            State::Running(running) => Some(&running.id),
            State::Ended(ended) => ended.id.as_ref(),
            _ => memory.last.as_ref().and_then(|last| last.id.as_ref()),
        };
        let (state, last) = self.states(spec, memory, restart, waiting);
        ContainerStatus {
            name: spec.name.clone(),
            image: image_of(spec),
            image_id: memory.image.as_ref().map(|image| image.digested.clone()).unwrap_or_default(),
            container_id: id.map(|id| format!("{}://{}", self.scheme, id.0)),
            restart_count: i32::try_from(memory.restarts).unwrap_or(i32::MAX),
            ready: memory.is_ready(spec),
            started: Some(memory.has_started(spec)),
            resources: memory.running().map(|_| spec.resources.clone().unwrap_or_default()),
            state: Some(state),
            last_state: last,
            ..ContainerStatus::default()
        }
    }

    /// Returns the state and the last state.
    fn states(
        &self,
        spec: &ContainerSpec,
        memory: &ContainerMemory,
        restart: Restart<'_>,
        waiting: &str,
    ) -> (ContainerState, Option<ContainerState>) {
        let last = memory.last.as_ref().map(|last| self.terminated(last));
        let state = match &memory.state {
            State::Running(running) => ContainerState {
                running: Some(ContainerStateRunning { started_at: Some(Time(running.started_at)) }),
                ..ContainerState::default()
            },
            State::Ended(ended) if memory.is_done(restart) || self.is_stopping() => self.terminated(ended),
            State::Ended(ended) => {
                if ended.shows_start_error(self.now) {
                    let waiting = waiting_for("RunContainerError", ended.message.clone());
                    return (waiting, Some(self.terminated(ended)));
                }
                let wait = memory.crash_back_off();
                // A container that is restarted at once does not wait.
                if wait.is_zero() {
                    return (self.terminated(ended), last);
                }
                let text = format!(
                    "back-off {} restarting failed container={} pod={}",
                    go_seconds(wait.as_secs()),
                    spec.name,
                    self.title,
                );
                return (waiting_for("CrashLoopBackOff", Some(text)), Some(self.terminated(ended)));
            }
            State::Waiting(pause) => waiting_for(pause.reason, Some(pause.message.clone())),
            State::New | State::GettingImage | State::Starting => match &last {
                Some(last) => last.clone(),
                None => waiting_for(waiting, None),
            },
        };
        (state, last)
    }

    fn is_stopping(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some() || self.memory.stopping_until.is_some()
    }

    fn terminated(&self, ended: &Ended) -> ContainerState {
        let terminated = ContainerStateTerminated {
            container_id: ended.id.as_ref().map(|id| format!("{}://{}", self.scheme, id.0)),
            exit_code: ended.exit_code,
            signal: ended.signal,
            reason: Some(ended.reason.to_owned()),
            message: ended.message.clone(),
            started_at: ended.started_at.map(Time),
            finished_at: Some(Time(ended.finished_at)),
        };
        ContainerState { terminated: Some(terminated), ..ContainerState::default() }
    }

    fn set_phase(&self, status: &mut PodStatus) {
        let phase = self.phase();
        status.phase = Some(phase.to_owned());
        if phase == "Failed" && self.memory.is_overdue {
            status.reason = Some("DeadlineExceeded".to_owned());
            status.message = Some("Pod was active on the node longer than the specified deadline".to_owned());
        }
    }

    fn phase(&self) -> &'static str {
        let memories = || self.memory.containers.values();
        let is_busy = memories().any(|memory| memory.running().is_some() || memory.is_starting());
        let has_run = |main: &ContainerSpec| {
            let memory = self.memory.containers.get(&main.name);
            memory.is_some_and(|memory| {
                memory.running().is_some() || memory.ended().is_some() || memory.last.is_some()
            })
        };
        // A pod with another sandbox runs its init containers again, and stays Running.
        let is_live = self.spec.containers.iter().any(has_run);
        let live = if is_live { "Running" } else { "Pending" };
        if is_busy {
            return live;
        }
        if self.memory.is_overdue {
            return "Failed";
        }
        let exit = |container: &ContainerSpec, restart: Restart<'_>| {
            let memory = self.memory.containers.get(&container.name)?;
            let is_final = memory.is_done(restart) || self.is_stopping();
            memory.ended().filter(|_| is_final).map(|ended| ended.exit_code)
        };
        let mut inits = self.spec.init_containers.iter().flatten().filter(|init| !is_sidecar(init));
        let has_failed = |init: &ContainerSpec| {
            exit(init, Restart::of_init(self.spec, init)).is_some_and(|code| code != 0)
        };
        if inits.any(has_failed) {
            return "Failed";
        }
        let mains = self.spec.containers.iter();
        let exits: Vec<Option<i32>> =
            mains.map(|main| exit(main, Restart::of_main(self.spec, main))).collect();
        if exits.iter().all(|exit| *exit == Some(0)) {
            return "Succeeded";
        }
        // A pod that is deleted ends, even if some containers never began.
        if exits.iter().all(Option::is_some) || self.pod.metadata.deletion_timestamp.is_some() {
            return "Failed";
        }
        live
    }

    fn set_conditions(&self, status: &mut PodStatus) {
        let generation = self.pod.metadata.generation;
        status.observed_generation = generation;
        let next = readiness::conditions(status, self.spec);
        let conditions = status.conditions.get_or_insert_default();
        for condition in next {
            let condition = PodCondition { observed_generation: generation, ..condition };
            crate::conditions::set(conditions, condition, &Time(self.now));
        }
    }
}
