//! The containers of a simulated pod: in the order of their roles, with the transitions that are due.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, ContainerStatus};
use k8s_openapi::jiff::Timestamp;

use super::{PodLifecycle, Sources, Step, exit_code, has_begun, pod_title, waiting};
use crate::kubelet::container::{Container, Environment, Pause, earlier};
use crate::kubelet::pod_event;
use crate::kubelet::resolve::{References, unconfigurable};
use crate::kubelet::restart::{Restart, RestartPolicy, is_sidecar};
use crate::kubelet::script::ContainerScript;

/// The run time of a container whose restart policy is not `Always`.
const TASK: Duration = Duration::from_secs(1);

impl PodLifecycle<'_> {
    pub(super) fn run_containers(mut self, mut wake_at: Option<Timestamp>) -> Step {
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

    /// Runs the init containers in order. Returns whether all have completed or, for sidecars, started, and when the next transition is due.
    fn run_init_containers(&mut self) -> (bool, Option<Timestamp>) {
        let pod = self.spec.clone();
        let specs = pod.init_containers.as_deref().unwrap_or_default();
        let mut statuses = self.status.init_container_statuses.take().unwrap_or_default();
        let has_begun = self.main_statuses().iter().any(has_begun);
        let mut wake_at = None;
        let mut through = true;
        for (spec, status) in specs.iter().zip(&mut statuses) {
            let sidecar = is_sidecar(spec);
            // A main container that has started once does not wait for a sidecar that restarts.
            if has_begun && !sidecar {
                continue;
            }
            let mut script = self.script(&spec.name).with_command(spec);
            if sidecar && self.around.has_probes {
                script = script.with_probes(spec);
            }
            if !sidecar && !script.endless {
                script.run_for = script.run_for.or(Some(Duration::ZERO));
            }
            let restart = Restart::of_init(&pod, spec);
            wake_at = earlier(wake_at, self.advance_container(Some(spec), &script, restart, status));
            let exit = exit_code(status);
            if !sidecar {
                status.ready = exit == Some(0);
                status.started = Some(false);
            }
            if !has_begun && exit != Some(0) && !(sidecar && status.started == Some(true)) {
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
        let pod = self.spec.clone();
        let specs = &pod.containers;
        let mut statuses = self.status.container_statuses.take().unwrap_or_default();
        let mut wake_at = None;
        for status in &mut statuses {
            let spec = specs.iter().find(|container| container.name == status.name);
            let restart = spec.map_or(Restart::NEVER, |spec| Restart::of_main(&pod, spec));
            let mut script = self.script(&status.name);
            if let Some(spec) = spec {
                script = script.with_command(spec);
                if self.around.has_probes {
                    script = script.with_probes(spec);
                }
            }
            if restart.policy != RestartPolicy::Always && !script.endless {
                script.run_for = script.run_for.or(Some(TASK));
            }
            wake_at = earlier(wake_at, self.advance_container(spec, &script, restart, status));
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
            wake_at = earlier(wake_at, self.advance_container(None, &script, Restart::NEVER, status));
            status.ready = false;
        }
        self.status.ephemeral_container_statuses = (!statuses.is_empty()).then_some(statuses);
        wake_at
    }

    /// Applies all transitions of a container that are due now.
    fn advance_container(
        &mut self,
        spec: Option<&ContainerSpec>,
        script: &ContainerScript,
        restart: Restart<'_>,
        status: &mut ContainerStatus,
    ) -> Option<Timestamp> {
        let environment = spec.map_or(Environment::Complete, |spec| self.environment(spec));
        let memory = self.memory.containers.entry(status.name.clone()).or_default();
        let title = pod_title(self.pod);
        let mut container = Container { script, restart, environment, pod: &title, status, memory };
        // Bounded: a container that ends and restarts at once has a transition due at all times.
        for _ in 0..4 {
            match container.advance(self.now) {
                Ok(change) => {
                    let (status, simulation) = (&*container.status, self.memory.simulation);
                    self.events.extend(pod_event::of_change(&change, self.pod, status, script, simulation));
                }
                Err(Pause::Until(wake_at)) => return wake_at,
                Err(Pause::Unread) => {
                    self.needs_objects = true;
                    return None;
                }
                Err(Pause::Blocked) => {
                    self.is_blocked = true;
                    return None;
                }
            }
        }
        Some(self.now)
    }

    /// Returns whether the environment of a container can be made.
    fn environment(&self, spec: &ContainerSpec) -> Environment {
        if !References::are_required_by(spec) {
            return Environment::Complete;
        }
        match self.around.sources {
            Sources::Unneeded => Environment::Complete,
            Sources::Unread => Environment::Unread,
            Sources::Read(objects) => unconfigurable(self.scope(objects), spec)
                .map_or(Environment::Complete, Environment::Incomplete),
        }
    }
}
