//! Probes: when to check a container, and what the results mean.

mod check;
mod grpc;
mod http;

pub use self::check::{Check, HttpProbe, run, run_hook};

use std::time::{Duration, Instant};

/// The timing of a probe, as in the specification of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTiming {
    /// `initialDelaySeconds`, from the start of the container. Default: 0.
    pub initial_delay: Duration,
    /// `periodSeconds`. Default: 10 s.
    pub period: Duration,
    /// `timeoutSeconds`. Default: 1 s.
    pub timeout: Duration,
    /// `successThreshold`. Default: 1.
    pub success_threshold: u32,
    /// `failureThreshold`. Default: 3.
    pub failure_threshold: u32,
}

impl Default for ProbeTiming {
    fn default() -> Self {
        Self {
            initial_delay: Duration::ZERO,
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            success_threshold: 1,
            failure_threshold: 3,
        }
    }
}

/// The result of a check. The text of a failure is that of the kubelet, for the Event `Unhealthy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The container is healthy.
    Success,
    /// The container is healthy, but the check was not complete: a server has redirected the request to another host.
    Warning(String),
    /// The container is not healthy.
    Failure(String),
}

/// The purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Holds the other probes back until the first success; a failure restarts the container.
    Startup,
    /// A failure restarts the container.
    Liveness,
    /// The result is the condition of the container.
    Readiness,
}

impl ProbeKind {
    /// Returns the first word of the Event's message, such as `Liveness`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }

    /// Returns the result before the first check.
    fn initial(self) -> bool {
        self == Self::Liveness
    }
}

/// The state of a probe. The caller makes the checks; the state knows no clock.
#[derive(Clone, Debug)]
pub struct ProbeState {
    kind: ProbeKind,
    timing: ProbeTiming,
    next: Instant,
    healthy: bool,
    in_flight: bool,
    done: bool,
    last: Option<bool>,
    run: u32,
}

impl ProbeState {
    /// Starts a probe for a container that started at `started`.
    pub fn new(kind: ProbeKind, timing: ProbeTiming, started: Instant) -> Self {
        Self {
            kind,
            timing,
            next: started + timing.initial_delay,
            healthy: kind.initial(),
            in_flight: false,
            done: false,
            last: None,
            run: 0,
        }
    }

    /// Returns whether a check is due at `now`. The caller then makes the check and reports the [`result`](Self::result).
    pub fn is_due(&self, now: Instant) -> bool {
        !self.in_flight && !self.done && now >= self.next
    }

    /// Returns when the next check is due, or `None` while a check is in flight and after the end of the probe.
    pub fn next(&self) -> Option<Instant> {
        (!self.in_flight && !self.done).then_some(self.next)
    }

    /// Marks a check as begun.
    pub fn begin(&mut self, now: Instant) {
        self.in_flight = true;
        self.next = now + self.timing.period;
    }

    /// Takes the result of a check, and returns whether the container is healthy if that has changed.
    ///
    /// A startup probe ends with the first change. A liveness or startup probe that has failed ends too: the container is restarted, with new probes.
    pub fn result(&mut self, now: Instant, result: &CheckResult) -> Option<bool> {
        self.in_flight = false;
        self.next = self.next.max(now);
        if self.done {
            return None;
        }
        let success = !matches!(result, CheckResult::Failure(_));
        self.run = if self.last == Some(success) { self.run.saturating_add(1) } else { 1 };
        self.last = Some(success);
        let threshold = if success { self.timing.success_threshold } else { self.timing.failure_threshold };
        let decided = self.run >= threshold.max(1);
        // A startup probe that fails has been unhealthy before: the failure is a change all the same.
        let changed = decided && (self.healthy != success || (self.kind == ProbeKind::Startup && !success));
        if changed {
            self.healthy = success;
            self.done = self.kind == ProbeKind::Startup || (self.kind == ProbeKind::Liveness && !success);
        }
        changed.then_some(success)
    }

    /// Returns whether the container is healthy, started or ready.
    pub fn is_healthy(&self) -> bool {
        self.healthy
    }

    /// Returns the timing.
    pub fn timing(&self) -> &ProbeTiming {
        &self.timing
    }
}

/// The probes of a container. Without a probe of a kind, the container counts as started, alive or ready.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// The startup probe.
    pub startup: Option<ProbeState>,
    /// The liveness probe.
    pub liveness: Option<ProbeState>,
    /// The readiness probe.
    pub readiness: Option<ProbeState>,
}

impl Probes {
    /// Returns the kinds of the checks that are due at `now`. Liveness and readiness wait for startup.
    pub fn due(&self, now: Instant) -> Vec<ProbeKind> {
        let due = |probe: &Option<ProbeState>| probe.as_ref().is_some_and(|probe| probe.is_due(now));
        if !self.is_started() {
            return if due(&self.startup) { vec![ProbeKind::Startup] } else { Vec::new() };
        }
        let pairs = [(ProbeKind::Liveness, &self.liveness), (ProbeKind::Readiness, &self.readiness)];
        pairs.into_iter().filter(|(_, probe)| due(probe)).map(|(kind, _)| kind).collect()
    }

    /// Returns when the next check is due.
    pub fn next(&self) -> Option<Instant> {
        let next = |probe: &Option<ProbeState>| probe.as_ref().and_then(ProbeState::next);
        if !self.is_started() {
            return next(&self.startup);
        }
        [next(&self.liveness), next(&self.readiness)].into_iter().flatten().min()
    }

    /// Returns the probe of a kind.
    pub fn get_mut(&mut self, kind: ProbeKind) -> Option<&mut ProbeState> {
        match kind {
            ProbeKind::Startup => self.startup.as_mut(),
            ProbeKind::Liveness => self.liveness.as_mut(),
            ProbeKind::Readiness => self.readiness.as_mut(),
        }
    }

    /// Returns whether the startup probe has succeeded.
    pub fn is_started(&self) -> bool {
        self.startup.as_ref().is_none_or(ProbeState::is_healthy)
    }

    /// Returns whether the container is ready.
    pub fn is_ready(&self) -> bool {
        self.is_started() && self.readiness.as_ref().is_none_or(ProbeState::is_healthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn failure() -> CheckResult {
        CheckResult::Failure("no".into())
    }

    fn check(state: &mut ProbeState, now: Instant, result: &CheckResult) -> Option<bool> {
        assert!(state.is_due(now));
        state.begin(now);
        assert!(!state.is_due(now + seconds(1000)), "two checks at once");
        state.result(now, result)
    }

    #[test]
    fn the_first_check_waits_for_the_delay_and_the_others_for_the_period() {
        let start = Instant::now();
        let timing = ProbeTiming { initial_delay: seconds(5), ..ProbeTiming::default() };
        let mut state = ProbeState::new(ProbeKind::Readiness, timing, start);
        assert!(!state.is_due(start + seconds(4)));
        assert_eq!(check(&mut state, start + seconds(5), &CheckResult::Success), Some(true));
        assert_eq!(state.next(), Some(start + seconds(15)));
    }

    #[test]
    fn thresholds_count_results_in_a_row() {
        let start = Instant::now();
        let timing = ProbeTiming { success_threshold: 2, ..ProbeTiming::default() };
        let mut state = ProbeState::new(ProbeKind::Readiness, timing, start);
        let results = [
            (true, None),
            (false, None),
            (true, None),
            (true, Some(true)),
            (true, None),
            (false, None),
            (false, None),
            (false, Some(false)),
        ];
        for (number, (success, change)) in results.into_iter().enumerate() {
            let result = if success { CheckResult::Success } else { failure() };
            assert_eq!(check(&mut state, start + seconds(10 * number as u64), &result), change, "{number}");
        }
    }

    #[test]
    fn startup_holds_the_others_back_and_liveness_ends_with_its_failure() {
        let now = Instant::now();
        let timing = ProbeTiming { failure_threshold: 1, ..ProbeTiming::default() };
        let probe = |kind| Some(ProbeState::new(kind, timing, now));
        let mut probes = Probes {
            startup: probe(ProbeKind::Startup),
            liveness: probe(ProbeKind::Liveness),
            readiness: probe(ProbeKind::Readiness),
        };
        assert_eq!(probes.due(now), [ProbeKind::Startup]);
        assert!(!probes.is_ready());
        assert_eq!(check(probes.startup.as_mut().unwrap(), now, &CheckResult::Success), Some(true));
        assert_eq!(probes.due(now), [ProbeKind::Liveness, ProbeKind::Readiness]);
        assert_eq!(check(probes.liveness.as_mut().unwrap(), now, &failure()), Some(false));
        assert_eq!(probes.due(now + seconds(100)), [ProbeKind::Readiness]);
        let mut failing = probe(ProbeKind::Startup).unwrap();
        assert_eq!(check(&mut failing, now, &failure()), Some(false));
        assert_eq!(failing.next(), None);
    }
}
