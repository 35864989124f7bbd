//! The state machine of a simulated container: waiting, running, terminated, and restarted.

use std::fmt::Write as _;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::restart::Restart;
use super::script::ContainerScript;

/// A change of a container's state, for the pod's Events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContainerChange {
    /// The image cannot be pulled, for this reason.
    PullFailed(String),
    PullBackedOff,
    /// The container cannot be created, for this reason.
    ConfigFailed(String),
    Started,
    /// The readiness probe fails.
    Unready,
    Ended,
    Restarting,
    BackedOff,
}

/// Why a container has no transition now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// The next transition is due at this time, if ever.
    Until(Option<Timestamp>),
    /// The objects of the environment have to be read first.
    Unread,
    /// An object of the environment is missing.
    Blocked,
}

impl From<Option<Timestamp>> for Pause {
    fn from(due: Option<Timestamp>) -> Self {
        Self::Until(due)
    }
}

/// Whether the environment of a container can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Environment {
    Complete,
    /// The objects of the environment have not been read.
    Unread,
    /// An object or a key is missing: the words of the kubelet.
    Incomplete(String),
}

/// The state of a container beside the status.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContainerMemory {
    /// When the container entered the current state, with full precision. The status has whole seconds only.
    pub since: Option<Timestamp>,
    /// How often the image could not be pulled.
    pull_failures: i32,
}

/// A container: script, restart policy and state.
pub(super) struct Container<'a> {
    pub script: &'a ContainerScript,
    pub restart: Restart<'a>,
    pub environment: Environment,
    /// The pod in messages of the kubelet: `NAME_NAMESPACE(UID)`.
    pub pod: &'a str,
    pub status: &'a mut ContainerStatus,
    pub memory: &'a mut ContainerMemory,
}

/// The longest back-off before a restart or a pull.
const MAX_BACK_OFF: Duration = Duration::from_mins(5);
/// How long the reason `ErrImagePull` is shown before `ImagePullBackOff`.
const ERROR_SHOWN: Duration = Duration::from_secs(2);
const CONFIG_ERROR: &str = "CreateContainerConfigError";
const PULL_ERROR: &str = "the pod has the annotation kubelet.windlass.dev/image-pull: fail";

impl Container<'_> {
    /// Applies the next transition that is due.
    ///
    /// Returns the change, or as an error the time when the next transition is due, if ever.
    pub(super) fn advance(&mut self, now: Timestamp) -> Result<ContainerChange, Pause> {
        let state = self.status.state.clone().unwrap_or_default();
        if let Some(running) = state.running {
            return self.while_running(&running, now);
        }
        if let Some(terminated) = state.terminated {
            return self.after_end(terminated, now);
        }
        self.while_waiting(&state.waiting.unwrap_or_default(), now)
    }

    /// Terminates the container.
    pub(super) fn stop(&mut self, exit_code: i32, now: Timestamp) {
        let state = self.status.state.clone().unwrap_or_default();
        if state.terminated.is_none() {
            let started = state.running.and_then(|running| running.started_at);
            self.end(exit_code, started, now);
        }
    }

    fn while_waiting(
        &mut self,
        waiting: &ContainerStateWaiting,
        now: Timestamp,
    ) -> Result<ContainerChange, Pause> {
        let since = *self.memory.since.get_or_insert(now);
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let pull_back_off = back_off(self.memory.pull_failures.max(1)).saturating_sub(ERROR_SHOWN);
        let delay = match reason {
            "CrashLoopBackOff" => back_off(self.status.restart_count),
            "ErrImagePull" => ERROR_SHOWN,
            "ImagePullBackOff" => pull_back_off,
            CONFIG_ERROR => Duration::ZERO,
            _ => self.script.start_after,
        };
        not_before(since, delay, now)?;
        if reason == "ErrImagePull" {
            return Ok(self.back_off_pull(now));
        }
        if self.script.image_missing {
            return Ok(self.fail_pull(now));
        }
        match &self.environment {
            Environment::Complete => {}
            Environment::Unread => return Err(Pause::Unread),
            Environment::Incomplete(why) => return self.fail_config(waiting, why.clone(), now),
        }
        Ok(self.start(now))
    }

    fn start(&mut self, now: Timestamp) -> ContainerChange {
        // The server writes an empty last state for a container that has never ended.
        if self.status.last_state.as_ref().is_some_and(|last| last.terminated.is_some()) {
            self.status.restart_count += 1;
        }
        self.memory.pull_failures = 0;
        let image = self.status.image.clone();
        self.status.image_id = format!("{image}@sha256:{}", fingerprint(&image));
        let incarnation = format!("{}/{}/{now}", self.status.name, self.status.restart_count);
        self.status.container_id = Some(format!("simulated://{}", fingerprint(&incarnation)));
        self.status.started = Some(self.script.started_after.is_zero());
        let started_at = Some(Time(now));
        self.enter(
            ContainerState {
                running: Some(ContainerStateRunning { started_at }),
                ..ContainerState::default()
            },
            now,
        );
        let is_ready = self.status.started == Some(true) && self.script.ready_after().is_zero();
        self.status.ready = is_ready && !self.script.is_unready;
        ContainerChange::Started
    }

    fn fail_pull(&mut self, now: Timestamp) -> ContainerChange {
        self.memory.pull_failures = self.memory.pull_failures.saturating_add(1);
        self.enter(waiting_for("ErrImagePull", Some(PULL_ERROR.to_owned())), now);
        ContainerChange::PullFailed(PULL_ERROR.to_owned())
    }

    fn back_off_pull(&mut self, now: Timestamp) -> ContainerChange {
        let message = format!("Back-off pulling image {:?}: ErrImagePull: {PULL_ERROR}", self.status.image);
        self.enter(waiting_for("ImagePullBackOff", Some(message)), now);
        ContainerChange::PullBackedOff
    }

    fn fail_config(
        &mut self,
        waiting: &ContainerStateWaiting,
        why: String,
        now: Timestamp,
    ) -> Result<ContainerChange, Pause> {
        if waiting.reason.as_deref() == Some(CONFIG_ERROR) && waiting.message.as_deref() == Some(why.as_str())
        {
            return Err(Pause::Blocked);
        }
        self.enter(waiting_for(CONFIG_ERROR, Some(why.clone())), now);
        Ok(ContainerChange::ConfigFailed(why))
    }

    fn while_running(
        &mut self,
        running: &ContainerStateRunning,
        now: Timestamp,
    ) -> Result<ContainerChange, Pause> {
        let started = running.started_at.as_ref().map_or(now, |time| time.0);
        let since = *self.memory.since.get_or_insert(started);
        let ends = self.script.run_for.map(|run_for| not_before(since, run_for, now));
        if let Some(Ok(())) = ends {
            self.end(self.script.exit_code.unwrap_or(0), running.started_at.clone(), now);
            return Ok(ContainerChange::Ended);
        }
        let mut next = ends.and_then(|due| due.err().flatten());
        if self.status.started != Some(true) {
            match not_before(since, self.script.started_after, now) {
                Ok(()) => self.status.started = Some(true),
                Err(due) => next = earlier(next, due),
            }
        }
        if self.script.is_unready {
            if std::mem::replace(&mut self.status.ready, false) {
                return Ok(ContainerChange::Unready);
            }
        } else if !self.status.ready && self.status.started == Some(true) {
            match not_before(since, self.script.ready_after(), now) {
                Ok(()) => self.status.ready = true,
                Err(due) => next = earlier(next, due),
            }
        }
        Err(next.into())
    }

    fn after_end(
        &mut self,
        terminated: ContainerStateTerminated,
        now: Timestamp,
    ) -> Result<ContainerChange, Pause> {
        if !self.restart.applies(terminated.exit_code) {
            return Err(Pause::Until(None));
        }
        let wait = back_off(self.status.restart_count);
        self.status.last_state =
            Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
        let message = format!(
            "back-off {} restarting failed container={} pod={}",
            go_seconds(wait.as_secs()),
            self.status.name,
            self.pod
        );
        self.enter(waiting_for("CrashLoopBackOff", Some(message)), now);
        Ok(if wait.is_zero() { ContainerChange::Restarting } else { ContainerChange::BackedOff })
    }

    fn end(&mut self, exit_code: i32, started_at: Option<Time>, now: Timestamp) {
        let terminated = ContainerStateTerminated {
            container_id: self.status.container_id.clone(),
            exit_code,
            started_at: started_at.or(Some(Time(now))),
            finished_at: Some(Time(now)),
            message: self.script.message.clone(),
            reason: Some(if exit_code == 0 { "Completed" } else { "Error" }.to_owned()),
            signal: None,
        };
        self.status.ready = false;
        self.status.started = Some(false);
        self.enter(ContainerState { terminated: Some(terminated), ..ContainerState::default() }, now);
    }

    fn enter(&mut self, state: ContainerState, now: Timestamp) {
        self.status.state = Some(state);
        self.memory.since = Some(now);
    }
}

/// Returns the state of a waiting container.
pub(super) fn waiting_for(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

/// Returns the earlier of two times, where `None` means never.
pub(super) fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

/// Returns `Ok` if `delay` has passed since `since`, else the time at the end of `delay`.
pub(super) fn not_before(since: Timestamp, delay: Duration, now: Timestamp) -> Result<(), Option<Timestamp>> {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    match since.checked_add(delay) {
        Ok(due) if due <= now => Ok(()),
        Ok(due) => Err(Some(due)),
        Err(_) => Err(None),
    }
}

/// Returns the back-off after this many restarts or failed pulls: none at first, then 10 s, doubled up to 5 minutes.
fn back_off(times: i32) -> Duration {
    match u32::try_from(times).unwrap_or(0) {
        0 => Duration::ZERO,
        n => Duration::from_secs(10).saturating_mul(1_u32 << (n - 1).min(10)).min(MAX_BACK_OFF),
    }
}

/// Writes seconds as Go does: `10s`, `1m20s`, `5m0s`.
pub(super) fn go_seconds(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// Returns 64 hexadecimal digits that depend on `text`, in place of a digest.
fn fingerprint(text: &str) -> String {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut digits = String::with_capacity(64);
    for round in 0..4_u8 {
        for byte in text.bytes().chain([round]) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let _ = write!(digits, "{state:016x}");
    }
    digits
}
