//! A token bucket that counts in advance, as golang.org/x/time/rate does.

use crate::tick::Tick;
use std::time::Duration;

/// Allows `burst` at once and `qps` a second after that. What exceeds it is told how long to wait; the tokens it will
/// then use are gone for those who come later.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    qps: f64,
    burst: f64,
    tokens: f64,
    at: Tick,
}

impl TokenBucket {
    pub(crate) fn new(qps: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { qps: qps.max(f64::MIN_POSITIVE), burst, tokens: burst, at: Tick::ZERO }
    }

    /// Takes one token: how long until it is there.
    pub(crate) fn reserve(&mut self, now: Tick) -> Duration {
        let elapsed = now.since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + elapsed * self.qps).min(self.burst) - 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.qps).unwrap_or(Duration::MAX)
    }
}
