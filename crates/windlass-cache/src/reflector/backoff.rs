//! Delays between attempts.

use std::time::Duration;

use super::BackoffConfig;

/// Delays that double from failure to failure, each lengthened by a random part of itself.
#[derive(Debug)]
pub(super) struct Backoff {
    config: BackoffConfig,
    failures: u32,
    random: u64,
}

impl Backoff {
    pub(super) fn new(config: BackoffConfig, seed: u64) -> Self {
        Self { config, failures: 0, random: seed }
    }

    /// An attempt has succeeded; answers whether one before had failed.
    pub(super) fn reset(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }

    /// The delay before the next attempt, after one has failed.
    pub(super) fn next(&mut self, unknown_kind: bool) -> Duration {
        let max = if unknown_kind { self.config.max_unknown_kind } else { self.config.max };
        let delay = self.config.initial.saturating_mul(1 << self.failures.min(16)).min(max);
        self.failures = self.failures.saturating_add(1);
        self.jitter(delay, delay)
    }

    /// `delay` and a random part of `spread` more.
    pub(super) fn jitter(&mut self, delay: Duration, spread: Duration) -> Duration {
        delay + spread.mul_f64(self.fraction())
    }

    /// At least 0, less than 1. The generator is SplitMix64.
    fn fraction(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.random;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ bits >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
