//! A container whose process runs: probes and the stop.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container as ContainerSpec;
use k8s_openapi::jiff::Timestamp;
use windlass_node::ContainerId;
use windlass_node::probe::CheckResult;
use windlass_runtime::events::EventType;

use super::action::Action;
use super::container::{Output, Surroundings};
use super::probe::{Due, ProbeCounter, ProbeKind};

/// The shortest time between the stop signal and SIGKILL after a `preStop` hook.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// The pause before SIGKILL is sent again to a container that still runs.
const KILL_AGAIN: Duration = Duration::from_secs(10);

/// A container whose process runs.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub id: ContainerId,
    pub started_at: Timestamp,
    /// The reference of the started image.
    pub(super) image: String,
    /// True if the `postStart` hook has ended.
    post_started: bool,
    probes: BTreeMap<ProbeKind, ProbeCounter>,
    pub(super) stop: Option<Stop>,
}

/// A stop that is under way.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    phase: StopPhase,
    deadline: Timestamp,
    /// True if the deadline was moved, because the hook took all of the grace period.
    is_extended: bool,
    /// Restart the container, also with the restart policy `Never`.
    pub(super) restart: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopPhase {
    /// The `preStop` hook runs.
    PreStop,
    /// The stop signal is sent.
    Asked,
    /// SIGKILL is sent.
    Killed,
}

impl Running {
    /// Returns a container that has just started.
    pub(super) fn new(id: ContainerId, image: String, around: Surroundings<'_>) -> Self {
        let hook = around.spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
        Self {
            id,
            started_at: around.now,
            image,
            post_started: hook.is_none(),
            probes: BTreeMap::new(),
            stop: None,
        }
    }

    /// Returns whether the `postStart` hook has ended.
    pub(super) fn is_post_started(&self) -> bool {
        self.post_started
    }

    fn verdict(&self, kind: ProbeKind) -> Option<bool> {
        self.probes.get(&kind).and_then(ProbeCounter::verdict)
    }

    pub(super) fn has_started(&self, spec: &ContainerSpec) -> bool {
        self.post_started && (spec.startup_probe.is_none() || self.verdict(ProbeKind::Startup) == Some(true))
    }

    pub(super) fn is_ready(&self, spec: &ContainerSpec) -> bool {
        self.has_started(spec)
            && (spec.readiness_probe.is_none() || self.verdict(ProbeKind::Readiness) == Some(true))
    }

    pub(super) fn advance(&mut self, around: Surroundings<'_>, out: &mut Output) {
        if self.stop.is_some() {
            return self.continue_stop(around, out);
        }
        if self.post_started {
            self.check(around, out);
        }
    }

    fn check(&mut self, around: Surroundings<'_>, out: &mut Output) {
        let started = self.has_started(around.spec);
        for kind in ProbeKind::ALL {
            let Some(probe) = kind.of(around.spec) else { continue };
            // The startup probe runs until the container has started, the other probes run from then on.
            if (kind == ProbeKind::Startup) == started {
                continue;
            }
            let counter = self.probes.entry(kind).or_default();
            match counter.due(probe, self.started_at, around.now) {
                Due::Now => {
                    counter.begin(around.now);
                    let container = around.spec.name.clone();
                    out.actions.push(Action::Check { container, id: self.id.clone(), kind });
                }
                Due::At(due) => out.wake(due),
                Due::Later => {}
            }
        }
    }

    /// Counts the result of a probe. A container that fails the liveness or startup probe is stopped.
    pub(crate) fn checked(
        &mut self,
        around: Surroundings<'_>,
        kind: ProbeKind,
        outcome: CheckResult,
        out: &mut Output,
    ) {
        let Some(probe) = kind.of(around.spec) else { return };
        let counter = self.probes.entry(kind).or_default();
        let is_new = counter.count(probe, !matches!(outcome, CheckResult::Failure(_)));
        let failed = counter.verdict() == Some(false);
        if self.stop.is_some() {
            return;
        }
        match outcome {
            CheckResult::Success => {}
            CheckResult::Warning(why) => {
                out.event(
                    EventType::Warning,
                    "ProbeWarning",
                    format!("{} probe warning: {why}", kind.word()),
                );
            }
            CheckResult::Failure(why) => {
                out.event(EventType::Warning, "Unhealthy", format!("{} probe failed: {why}", kind.word()));
            }
        }
        if !(is_new && failed) || kind == ProbeKind::Readiness {
            return;
        }
        let grace = probe.termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let grace = grace.map_or(around.grace, Duration::from_secs);
        let word = kind.word().to_lowercase();
        let why = format!("Container {} failed {word} probe, will be restarted", around.spec.name);
        self.begin_stop(around, grace, why, false, out);
    }

    pub(crate) fn post_started(
        &mut self,
        around: Surroundings<'_>,
        outcome: Result<(), String>,
        out: &mut Output,
    ) {
        self.post_started = true;
        if let Err(why) = outcome {
            out.event(EventType::Warning, "FailedPostStartHook", format!("PostStartHook failed: {why}"));
            self.begin_stop(around, around.grace, "FailedPostStartHook".to_owned(), false, out);
        }
    }

    pub(crate) fn pre_stopped(
        &mut self,
        around: Surroundings<'_>,
        outcome: Result<(), String>,
        out: &mut Output,
    ) {
        if let Err(why) = outcome {
            out.event(EventType::Warning, "FailedPreStopHook", format!("PreStopHook failed: {why}"));
        }
        if let Some(stop) = &mut self.stop
            && stop.phase == StopPhase::PreStop
        {
            stop.ask_after_hook(&self.id, around.now, out);
        }
    }

    /// Begins a stop. A stop that is under way keeps the phase, and the deadline may come earlier.
    pub(super) fn begin_stop(
        &mut self,
        around: Surroundings<'_>,
        grace: Duration,
        why: String,
        restart: bool,
        out: &mut Output,
    ) {
        let deadline = around.now.checked_add(grace).unwrap_or(Timestamp::MAX);
        if let Some(stop) = &mut self.stop {
            stop.restart &= restart;
            if !stop.is_extended && stop.phase != StopPhase::Killed {
                stop.deadline = stop.deadline.min(deadline);
            }
            return;
        }
        out.event(EventType::Normal, "Killing", why);
        let hook = around.spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        let mut stop = Stop { phase: StopPhase::PreStop, deadline, is_extended: false, restart };
        if hook.is_some() && !grace.is_zero() {
            out.actions.push(Action::PreStop { container: around.spec.name.clone(), id: self.id.clone() });
        } else {
            stop.ask(&self.id, out);
        }
        out.wake(stop.deadline);
        self.stop = Some(stop);
    }

    fn continue_stop(&mut self, around: Surroundings<'_>, out: &mut Output) {
        let Some(stop) = &mut self.stop else { return };
        if stop.deadline > around.now {
            return out.wake(stop.deadline);
        }
        if stop.phase == StopPhase::PreStop {
            return stop.ask_after_hook(&self.id, around.now, out);
        }
        stop.phase = StopPhase::Killed;
        out.actions.push(Action::Signal { id: self.id.clone(), signal: Some(9) });
        // The runtime may have failed to send the signal.
        stop.deadline = around.now.checked_add(KILL_AGAIN).unwrap_or(Timestamp::MAX);
        out.wake(stop.deadline);
    }
}

impl Stop {
    /// Sends the stop signal after the `preStop` hook. The container keeps two seconds, even if the hook took all of the grace period.
    fn ask_after_hook(&mut self, id: &ContainerId, now: Timestamp, out: &mut Output) {
        let least = now.checked_add(LEAST_GRACE).unwrap_or(now);
        self.is_extended = self.deadline < least;
        self.deadline = self.deadline.max(least);
        self.ask(id, out);
        out.wake(self.deadline);
    }

    fn ask(&mut self, id: &ContainerId, out: &mut Output) {
        self.phase = StopPhase::Asked;
        out.actions.push(Action::Signal { id: id.clone(), signal: None });
    }
}
