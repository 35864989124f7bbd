//! The counters of a container's probes: pure, without the checks themselves.

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The probes of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ProbeKind {
    Startup,
    Liveness,
    Readiness,
}

impl ProbeKind {
    pub(crate) const ALL: [Self; 3] = [Self::Startup, Self::Liveness, Self::Readiness];

    /// Returns the probe of this kind.
    pub(crate) fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
        }
    }

    /// Returns the word that begins an Event about a failed probe.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }
}

/// The results of a probe since the container started.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeCounter {
    /// When the last check began.
    checked_at: Option<Timestamp>,
    is_checking: bool,
    successes: i32,
    failures: i32,
    /// The result after the threshold. `None`: no threshold has been reached.
    verdict: Option<bool>,
}

/// The next action of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    At(Timestamp),
    /// A check runs.
    Later,
}

impl ProbeCounter {
    /// Returns the result after the threshold.
    pub(crate) fn verdict(&self) -> Option<bool> {
        self.verdict
    }

    /// Returns when the next check is due. `from` is the start time of the container.
    pub(crate) fn due(&self, probe: &Probe, from: Timestamp, now: Timestamp) -> Due {
        if self.is_checking {
            return Due::Later;
        }
        let (since, wait) = match self.checked_at {
            Some(checked_at) => (checked_at, seconds(probe.period_seconds, 10, 1)),
            None => (from, seconds(probe.initial_delay_seconds, 0, 0)),
        };
        match since.checked_add(SignedDuration::from_secs(wait)) {
            Ok(due) if due > now => Due::At(due),
            _ => Due::Now,
        }
    }

    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.is_checking = true;
        self.checked_at = Some(now);
    }

    /// Counts a result. Returns whether the verdict is new.
    pub(crate) fn count(&mut self, probe: &Probe, success: bool) -> bool {
        self.is_checking = false;
        let before = self.verdict;
        if success {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
            if self.successes >= probe.success_threshold.unwrap_or(1).max(1) {
                self.verdict = Some(true);
            }
        } else {
            self.successes = 0;
            self.failures = self.failures.saturating_add(1);
            if self.failures >= probe.failure_threshold.unwrap_or(3).max(1) {
                self.verdict = Some(false);
            }
        }
        self.verdict != before
    }
}

fn seconds(value: Option<i32>, default: i64, least: i64) -> i64 {
    value.map_or(default, i64::from).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> Probe {
        Probe { initial_delay_seconds: Some(5), period_seconds: Some(2), ..Probe::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_first_check_waits_for_the_delay_and_the_next_for_the_period() {
        let mut counter = ProbeCounter::default();
        assert_eq!(counter.due(&probe(), at(0), at(1)), Due::At(at(5)));
        assert_eq!(counter.due(&probe(), at(0), at(6)), Due::Now);
        counter.begin(at(6));
        assert_eq!(counter.due(&probe(), at(0), at(60)), Due::Later);
        counter.count(&probe(), true);
        assert_eq!(counter.due(&probe(), at(0), at(7)), Due::At(at(8)));
    }

    #[test]
    fn a_verdict_needs_as_many_equal_results_as_its_threshold() {
        let mut counter = ProbeCounter::default();
        let news: Vec<bool> =
            [false, false, true, false, false, false].map(|ok| counter.count(&probe(), ok)).to_vec();
        assert_eq!(news, [false, false, true, false, false, true]);
        assert_eq!(counter.verdict(), Some(false));
    }
}
