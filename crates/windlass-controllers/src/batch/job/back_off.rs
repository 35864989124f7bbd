//! The delay before pods are created again after failures.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::pod;

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(10);

/// The failures of a Job since the last success of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BackOff {
    failures: i32,
    last_failure: Option<Timestamp>,
}

impl BackOff {
    /// Counts pods that finished since.
    pub(super) fn after(mut self, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) -> Self {
        let last_success = succeeded.iter().map(|pod| pod::finished_at(pod)).max();
        if last_success.is_some() {
            self = Self::default();
        }
        for failure in failed.iter().map(|pod| pod::finished_at(pod)) {
            if last_success.is_none_or(|success| failure > success) {
                self.failures = self.failures.saturating_add(1);
                self.last_failure = self.last_failure.max(Some(failure));
            }
        }
        self
    }

    /// Returns when pods may be created, if that is later than now.
    pub(super) fn ends(self, now: Timestamp) -> Option<Timestamp> {
        ends_after(self.failures, self.last_failure?).filter(|end| *end > now)
    }
}

/// Returns when the back-off after a number of failures ends: 10 s after the first, doubled for each more, at most 10 minutes.
pub(super) fn ends_after(failures: i32, last: Timestamp) -> Option<Timestamp> {
    let doublings = u32::try_from(failures).ok()?.checked_sub(1)?.min(6);
    let wait = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    last.checked_add(wait).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_ten_minutes() {
        let wait = |failures| ends_after(failures, Timestamp::UNIX_EPOCH).map(Timestamp::as_second);
        assert_eq!(
            [0, 1, 2, 6, 7, 100].map(wait),
            [None, Some(10), Some(20), Some(320), Some(600), Some(600)]
        );
    }
}
