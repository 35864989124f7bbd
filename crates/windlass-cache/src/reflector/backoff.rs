//! Delays between failed attempts.

use std::time::Duration;

use super::BackoffConfig;

/// An exponential back-off with jitter.
#[derive(Debug)]
pub(super) struct Backoff {
    config: BackoffConfig,
    failures: u32,
    random: fastrand::Rng,
}

impl Backoff {
    pub(super) fn new(config: BackoffConfig, seed: u64) -> Self {
        Self { config, failures: 0, random: fastrand::Rng::with_seed(seed) }
    }

    /// Returns whether the last attempt failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Records a success; returns whether the attempt before had failed.
    pub(super) fn reset(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }

    /// Records a failure and returns the delay before the next attempt.
    pub(super) fn next(&mut self, unknown_kind: bool) -> Duration {
        let max = if unknown_kind { self.config.max_unknown_kind } else { self.config.max };
        let delay = self.config.initial.saturating_mul(1 << self.failures.min(16)).min(max);
        self.failures = self.failures.saturating_add(1);
        self.jitter(delay, delay)
    }

    /// Returns `delay` plus a random part of `spread`.
    pub(super) fn jitter(&mut self, delay: Duration, spread: Duration) -> Duration {
        delay + spread.mul_f64(self.random.f64())
    }
}
