//! How long to wait before a connection is opened again after failures.

use std::time::Duration;

use tokio::time::Instant;

/// The wait after the second failure in a row; doubled with each further failure.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// The longest wait. Short, because the lease of a leader may depend on the connection.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The failures in a row of opening a connection.
#[derive(Debug, Default)]
pub(crate) struct Redial {
    failures: u32,
    not_before: Option<Instant>,
}

impl Redial {
    /// Notes that a connection was opened.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Notes that no connection was opened. `fraction` is a random number in `0.0..1.0`, which spreads clients that failed at once.
    pub(crate) fn failed(&mut self, now: Instant, fraction: f64) {
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.saturating_sub(2).min(16);
        let wait = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
        self.not_before =
            (self.failures > 1).then(|| now + wait.mul_f64(0.5 + fraction.clamp(0.0, 1.0) / 2.0));
    }

    /// Returns the time of the next attempt, or `None` if the next attempt may begin at once.
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_second() {
        let now = Instant::now();
        let mut redial = Redial::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            redial.failed(now, 1.0);
            waits.push(redial.next_attempt().map(|at| (at - now).as_millis()));
        }
        let expected = [None, Some(50), Some(100), Some(200), Some(400), Some(800), Some(1000), Some(1000)];
        assert_eq!(waits, expected);
        redial.failed(now, 0.0);
        assert_eq!(redial.next_attempt(), Some(now + Duration::from_millis(500)), "spread");
        redial.succeeded();
        assert_eq!(redial.next_attempt(), None);
    }
}
