//! A pod with a scripted runtime and simulated time.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_node::probe::CheckResult;
use windlass_node::{ContainerId, Exit, PullError};

use super::super::action::{Action, FoundImage, Observation, StartError};
use super::super::memory::RealMemory;
use super::super::pod::advance;
use crate::kubelet::lifecycle::PodAddresses;
use crate::kubelet::resolve::MountError;

use super::image;

/// A pod, a clock, and the answers of a runtime.
pub(super) struct Stage {
    pub(super) pod: Pod,
    pub(super) memory: RealMemory,
    pub(super) now: Timestamp,
    pub(super) wake_at: Option<Timestamp>,
    pub(super) inbox: Vec<Observation>,
    pub(super) events: Vec<String>,
    pub(super) actions: Vec<Action>,
    pub(super) removed: bool,
    pub(super) starts: u32,
    /// The image of these containers cannot be had.
    pub(super) pull_error: Option<PullError>,
    pub(super) present: bool,
    /// Containers fail to start.
    pub(super) start_error: Option<StartError>,
    pub(super) mount_error: Option<MountError>,
    /// How long a token of the volumes lasts until the token is renewed.
    pub(super) renew_after: Option<SignedDuration>,
    /// The pull of this container does not end by itself.
    pub(super) hold_pull: Option<&'static str>,
    /// The sandbox has ended by itself.
    pub(super) sandbox_ended: bool,
    /// The sandbox cannot be removed.
    pub(super) removal_error: Option<String>,
    /// Starts do not end by themselves.
    pub(super) hold_start: bool,
    /// The results of probes; a probe without a result succeeds.
    pub(super) probes: BTreeMap<&'static str, &'static str>,
    /// Hooks that do not end by themselves.
    pub(super) hold_hooks: bool,
    /// True if containers obey the stop signal.
    pub(super) obedient: bool,
    /// The runtime fails to kill containers.
    pub(super) immortal: bool,
}

impl Stage {
    pub(super) fn new(spec: &Value) -> Self {
        let pod = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec});
        let now = Timestamp::UNIX_EPOCH;
        Self {
            pod: serde_json::from_value(pod).unwrap(),
            memory: RealMemory::default(),
            now,
            wake_at: Some(now),
            inbox: Vec::new(),
            events: Vec::new(),
            actions: Vec::new(),
            removed: false,
            starts: 0,
            pull_error: None,
            present: true,
            start_error: None,
            mount_error: None,
            renew_after: None,
            hold_pull: None,
            sandbox_ended: false,
            removal_error: None,
            hold_start: false,
            probes: BTreeMap::new(),
            hold_hooks: false,
            obedient: true,
            immortal: false,
        }
    }

    pub(super) fn step(&mut self) {
        let addresses = PodAddresses { host_ip: "10.250.0.2".into(), pod_ip: Some("10.244.0.2".into()) };
        let inbox = std::mem::take(&mut self.inbox);
        let step = advance(&self.pod, &addresses, "process", &mut self.memory, inbox, self.now);
        let status = serde_json::to_value(&step.status).unwrap();
        self.pod.status = Some(serde_json::from_value(status).unwrap());
        let said = step.events.iter().map(|event| format!("{}: {}", event.reason, event.message));
        self.events.extend(said);
        self.wake_at = step.wake_at;
        self.removed = step.remove;
        for action in step.actions {
            self.answer(&action);
            self.actions.push(action);
        }
    }

    pub(super) fn answer(&mut self, action: &Action) {
        let observation = match action {
            Action::PrepareVolumes => {
                let renew_at = self.renew_after.map(|life| self.now + life);
                Observation::Volumes(self.mount_error.clone().map_or(Ok(renew_at), Err))
            }
            Action::CreateSandbox => {
                self.sandbox_ended = false;
                Observation::Sandbox(Ok(()))
            }
            Action::RemoveSandbox => {
                Observation::SandboxRemoved(self.removal_error.clone().map_or(Ok(()), Err))
            }
            Action::FindImage { container } => {
                let image = self.present.then(image);
                let outcome = Ok(FoundImage { image, may_pull: !self.present });
                Observation::Found { container: container.clone(), outcome }
            }
            Action::Pull { container } if self.hold_pull == Some(container) => return,
            Action::Pull { container } => {
                let outcome = self.pull_error.clone().map_or_else(|| Ok(image()), Err);
                let took = Duration::from_millis(1500);
                Observation::Pulled { container: container.clone(), outcome, took }
            }
            Action::Start { .. } if self.hold_start => return,
            Action::Start { container, .. } if self.sandbox_ended => {
                Observation::SandboxEnded { container: container.clone() }
            }
            Action::Start { container, .. } => {
                self.starts += 1;
                let id = ContainerId(format!("{container}{}", self.starts));
                let outcome = self.start_error.clone().map_or(Ok(id), Err);
                Observation::Started { container: container.clone(), outcome }
            }
            Action::PostStart { id, .. } => Observation::PostStarted { id: id.clone(), outcome: Ok(()) },
            Action::PreStop { .. } if self.hold_hooks => return,
            Action::PreStop { id, .. } => Observation::PreStopped { id: id.clone(), outcome: Ok(()) },
            Action::Signal { id, signal } => {
                let number = signal.unwrap_or(15);
                if self.immortal || (!self.obedient && number != 9) {
                    return;
                }
                self.exit_of(&id.0, 128 + number, None)
            }
            Action::Check { id, kind, .. } => {
                let outcome = match self.probes.get(kind.word()) {
                    Some(why) => CheckResult::Failure((*why).to_owned()),
                    None => CheckResult::Success,
                };
                Observation::Checked { id: id.clone(), kind: *kind, outcome }
            }
            Action::Forget { .. } => return,
        };
        self.inbox.push(observation);
    }

    pub(super) fn exit_of(&self, id: &str, code: i32, message: Option<&str>) -> Observation {
        let at = SystemTime::from(self.now);
        let signal = (code > 128).then(|| code - 128);
        let exit = Exit { code, signal, out_of_memory: false, started_at: at, finished_at: at };
        let message = message.map(str::to_owned);
        Observation::Exited { id: ContainerId(id.to_owned()), exit, message }
    }

    pub(super) fn exits(&mut self, id: &str, code: i32) -> &mut Self {
        let exit = self.exit_of(id, code, Some("last words"));
        self.inbox.push(exit);
        self.run_for(0.0)
    }

    /// Runs for `seconds`, and performs every step on time.
    pub(super) fn run_for(&mut self, seconds: f64) -> &mut Self {
        let end = self.now + SignedDuration::try_from(Duration::from_secs_f64(seconds)).unwrap();
        for _ in 0..10_000 {
            if !self.inbox.is_empty() {
                self.step();
                continue;
            }
            match self.wake_at {
                Some(due) if due <= end => {
                    self.now = self.now.max(due);
                    self.wake_at = None;
                    self.step();
                }
                _ => {
                    self.now = end;
                    return self;
                }
            }
        }
        panic!("the pod never rests: {:?}", self.events);
    }

    pub(super) fn delete(&mut self, grace: i64) -> &mut Self {
        let until = self.now + SignedDuration::from_secs(grace);
        let time = serde_json::from_value(json!(until.to_string())).unwrap();
        self.pod.metadata.deletion_timestamp = Some(time);
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
        self.wake_at = Some(self.now);
        self.run_for(0.0)
    }

    pub(super) fn phase(&self) -> String {
        self.pod.status.clone().unwrap().phase.unwrap()
    }

    pub(super) fn is_ready(&self) -> bool {
        let conditions = self.pod.status.clone().unwrap().conditions;
        crate::conditions::is_true(conditions.as_ref(), "Ready")
    }

    pub(super) fn container(&self, name: &str) -> ContainerStatus {
        let status = self.pod.status.clone().unwrap();
        let lists =
            [status.container_statuses, status.init_container_statuses, status.ephemeral_container_statuses];
        lists.into_iter().flatten().flatten().find(|status| status.name == name).unwrap()
    }

    /// Returns the state of a container in a word, with the exit code.
    pub(super) fn state(&self, name: &str) -> String {
        let state = self.container(name).state.unwrap();
        if let Some(waiting) = state.waiting {
            return waiting.reason.unwrap();
        }
        match state.terminated {
            Some(ended) => format!("{} {}", ended.reason.unwrap(), ended.exit_code),
            None => "Running".to_owned(),
        }
    }

    pub(super) fn has_event(&self, text: &str) -> bool {
        self.events.iter().any(|event| event == text)
    }

    #[track_caller]
    pub(super) fn assert_event(&self, text: &str) {
        assert!(self.has_event(text), "no {text:?} in {:#?}", self.events);
    }
}
