//! Slows down keys that are reconciled again and again, each time with a write.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// A key that was reconciled this many times with a write within [`WINDOW`] is in a hot loop.
const LIMIT: usize = 20;
const WINDOW: Duration = Duration::from_secs(10);

/// The least time between two reconciles of a key in a hot loop.
const SLOWED: Duration = Duration::from_millis(500);

/// The last reconciles of a key that wrote.
///
/// A reconciler that reacts to its own writes, or that fights another writer, would otherwise loop as fast as the server
/// responds, with green metrics.
#[derive(Default)]
pub(super) struct HotLoop {
    /// The times of the reconciles, at most [`LIMIT`].
    writes: VecDeque<Instant>,
    /// The time at which the loop was last reported.
    reported: Option<Instant>,
}

/// The wait of a key in a hot loop.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) wait: Duration,
    /// True once in [`WINDOW`].
    pub(crate) report: bool,
}

impl HotLoop {
    /// Remembers that the key was reconciled with a write.
    pub(super) fn wrote(&mut self, now: Instant) {
        if self.writes.len() == LIMIT {
            self.writes.pop_front();
        }
        self.writes.push_back(now);
    }

    /// Returns how long the key has to wait; `None` if the key is in no hot loop.
    pub(super) fn hold(&mut self, now: Instant) -> Option<Hold> {
        let (first, last) = (*self.writes.front()?, *self.writes.back()?);
        if self.writes.len() < LIMIT || now - first >= WINDOW {
            return None;
        }
        let wait = (last + SLOWED).saturating_duration_since(now);
        if wait.is_zero() {
            return None;
        }
        let report = self.reported.is_none_or(|last| now - last >= WINDOW);
        if report {
            self.reported = Some(now);
        }
        Some(Hold { wait, report })
    }

    /// Returns true if the key has not written for a while.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.writes.back().is_none_or(|last| now - *last >= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(millis: u64, report: bool) -> Hold {
        Hold { wait: Duration::from_millis(millis), report }
    }

    #[test]
    fn from_the_twenty_first_on_a_key_is_reconciled_twice_a_second() {
        let (mut key, began) = (HotLoop::default(), Instant::now());
        let at = |millis| began + Duration::from_millis(millis);
        for n in 0..20 {
            assert_eq!(key.hold(at(n * 100)), None, "{n}");
            key.wrote(at(n * 100));
        }
        assert_eq!(key.hold(at(2000)), Some(hold(400, true)));
        assert_eq!(key.hold(at(2300)), Some(hold(100, false)));
        assert_eq!(key.hold(at(2400)), None);
        key.wrote(at(2400));
        assert_eq!(key.hold(at(2401)), Some(hold(499, false)));
        assert_eq!(key.hold(at(30_000)), None, "the loop has ended");
        assert!(key.is_idle(at(30_000)));
    }

    #[test]
    fn slow_keys_never_wait() {
        let (mut key, began) = (HotLoop::default(), Instant::now());
        for n in 0..100 {
            let now = began + Duration::from_secs(n);
            assert_eq!(key.hold(now), None);
            key.wrote(now);
        }
    }
}
