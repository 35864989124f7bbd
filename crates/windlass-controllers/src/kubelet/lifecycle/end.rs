//! The end of a simulated pod: the active deadline, and the deletion with the grace period.

use k8s_openapi::api::core::v1::ContainerStatus;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use windlass_runtime::events::EventType;

use super::{PodLifecycle, Step, exit_code};
use crate::kubelet::container::{Container, Environment, earlier, not_before};
use crate::kubelet::pod_event::PodEvent;
use crate::kubelet::restart::Restart;

impl PodLifecycle<'_> {
    /// Returns when `activeDeadlineSeconds` ends.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let limit = SignedDuration::from_secs(self.spec.active_deadline_seconds?);
        self.status.start_time.as_ref()?.0.checked_add(limit).ok()
    }

    pub(super) fn fail_for_deadline(mut self) -> Step {
        self.stop_all(137);
        self.status.phase = Some("Failed".to_owned());
        self.status.reason = Some("DeadlineExceeded".to_owned());
        self.status.message =
            Some("Pod was active on the node longer than the specified deadline".to_owned());
        self.update_conditions();
        self.finish(None)
    }

    /// Terminates the pod: stops the containers within the grace period, then allows the object to be deleted.
    pub(super) fn terminate(mut self) -> Step {
        let first_look = self.memory.stopping_since.is_none();
        let since = *self.memory.stopping_since.get_or_insert(self.now);
        let running = self.running();
        if first_look {
            self.events.extend(running.iter().map(|name| PodEvent {
                container: Some(name.clone()),
                ..PodEvent::new(EventType::Normal, "Killing", format!("Stopping container {name}"))
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
        Step { remove: true, ..self.finish(None) }
    }

    fn stop_all(&mut self, exit_code: i32) {
        let mut lists = [
            self.status.init_container_statuses.take(),
            self.status.container_statuses.take(),
            self.status.ephemeral_container_statuses.take(),
        ];
        for status in lists.iter_mut().flatten().flatten() {
            self.stop(status, exit_code);
        }
        let [inits, mains, ephemerals] = lists;
        self.status.init_container_statuses = inits;
        self.status.container_statuses = mains;
        self.status.ephemeral_container_statuses = ephemerals;
    }

    fn stop(&mut self, status: &mut ContainerStatus, exit_code: i32) {
        let script = self.script(&status.name);
        let memory = self.memory.containers.entry(status.name.clone()).or_default();
        Container {
            script: &script,
            restart: Restart::NEVER,
            environment: Environment::Complete,
            pod: "",
            status,
            memory,
        }
        .stop(exit_code, self.now);
    }

    /// Stops the init containers that still run: sidecars end with the main containers.
    pub(super) fn stop_sidecars(&mut self) {
        let mut statuses = self.status.init_container_statuses.take();
        let is_running = |status: &&mut ContainerStatus| {
            status.state.as_ref().is_some_and(|state| state.running.is_some())
        };
        for status in statuses.iter_mut().flatten().filter(is_running) {
            self.stop(status, 0);
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
}
