//! Slows down keys that are reconciled again and again, each time with a write.

use std::{collections::VecDeque, hash::Hash, time::Duration};

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A key that was reconciled this many times with a write within [`WINDOW`] is in a hot loop.
const LIMIT: usize = 20;
const WINDOW: Duration = Duration::from_secs(10);

/// The least time between two reconciles of a key in a hot loop.
const SLOWED: Duration = Duration::from_millis(500);

/// The number of keys from which idle keys are removed.
const SWEEP: usize = 256;

/// Remembers when keys were reconciled with a write.
///
/// A reconciler that reacts to its own writes, or that fights another writer, would otherwise loop as fast as
/// the server responds, while all metrics look healthy.
pub(crate) struct HotLoops<Q> {
    enabled: bool,
    keys: Mutex<Keys<Q>>,
}

struct Keys<Q> {
    recent: HashMap<Q, Recent, foldhash::fast::FixedState>,
    sweep_at: usize,
}

impl<Q: Eq + Hash> Keys<Q> {
    fn sweep(&mut self, now: Instant) {
        self.recent.retain(|_, recent| recent.writes.back().is_some_and(|last| now - *last < WINDOW));
        self.sweep_at = SWEEP.max(self.recent.len() * 2);
        self.recent.shrink_to(self.sweep_at);
    }
}

#[derive(Default)]
struct Recent {
    /// The last reconciles with a write, at most [`LIMIT`].
    writes: VecDeque<Instant>,
    /// When the loop was last reported.
    reported: Option<Instant>,
}

impl Recent {
    /// Returns the time that the key has to wait. Zero for a key without a hot loop.
    fn wait(&self, now: Instant) -> Duration {
        match (self.writes.front(), self.writes.back()) {
            (Some(first), Some(last)) if self.writes.len() == LIMIT && now - *first < WINDOW => {
                (*last + SLOWED).saturating_duration_since(now)
            }
            _ => Duration::ZERO,
        }
    }
}

/// The pace of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Reconcile it.
    Go,
    /// Wait first. `report` is true once in [`WINDOW`].
    Hold { wait: Duration, report: bool },
}

impl<Q: Eq + Hash> HotLoops<Q> {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, keys: Mutex::new(Keys { recent: HashMap::default(), sweep_at: SWEEP }) }
    }

    /// Remembers that a key was reconciled with a write.
    pub(crate) fn wrote(&self, key: Q, now: Instant) {
        if !self.enabled {
            return;
        }
        let mut keys = self.keys.lock();
        if keys.recent.len() >= keys.sweep_at {
            keys.sweep(now);
        }
        let recent = keys.recent.entry(key).or_default();
        if recent.writes.len() == LIMIT {
            recent.writes.pop_front();
        }
        recent.writes.push_back(now);
    }

    /// Forgets the keys that were not written to for a while, and returns the number of keys that stay.
    pub(crate) fn sweep(&self, now: Instant) -> usize {
        let mut keys = self.keys.lock();
        keys.sweep(now);
        keys.recent.len()
    }

    /// Decides whether a key is reconciled now.
    pub(crate) fn pace(&self, key: &Q, now: Instant) -> Pace {
        if !self.enabled {
            return Pace::Go;
        }
        let mut keys = self.keys.lock();
        let Some(recent) = keys.recent.get_mut(key) else { return Pace::Go };
        let wait = recent.wait(now);
        if wait.is_zero() {
            return Pace::Go;
        }
        let report = recent.reported.is_none_or(|last| now - last >= WINDOW);
        if report {
            recent.reported = Some(now);
        }
        Pace::Hold { wait, report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_twenty_first_on_a_key_is_reconciled_twice_a_second() {
        let (loops, began) = (HotLoops::new(true), Instant::now());
        let at = |millis| began + Duration::from_millis(millis);
        for n in 0..20 {
            assert_eq!(loops.pace(&"a", at(n * 100)), Pace::Go, "{n}");
            loops.wrote("a", at(n * 100));
        }
        assert_eq!(loops.pace(&"a", at(2000)), Pace::Hold { wait: Duration::from_millis(400), report: true });
        assert_eq!(
            loops.pace(&"a", at(2300)),
            Pace::Hold { wait: Duration::from_millis(100), report: false }
        );
        assert_eq!(loops.pace(&"b", at(2300)), Pace::Go, "another key");
        assert_eq!(loops.pace(&"a", at(2400)), Pace::Go);
        loops.wrote("a", at(2400));
        assert_eq!(
            loops.pace(&"a", at(2401)),
            Pace::Hold { wait: Duration::from_millis(499), report: false }
        );
        assert_eq!(loops.pace(&"a", at(30_000)), Pace::Go, "the loop has ended");
    }

    #[test]
    fn slow_keys_never_wait_and_leave_nothing() {
        let (loops, began) = (HotLoops::new(true), Instant::now());
        for n in 0..10_000_u64 {
            let now = began + Duration::from_secs(n);
            assert_eq!(loops.pace(&n, now), Pace::Go);
            loops.wrote(n, now);
        }
        assert!(loops.keys.lock().recent.len() <= SWEEP);
    }
}
