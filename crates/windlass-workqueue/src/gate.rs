//! Whom to wake, and whether to wake anybody at all.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::tick::Tick;
use std::time::Duration;

/// A sleeper that was rung for and has not looked for so long may lie behind the very task that rang: an executor
/// likes to run what a task wakes after that task, on the same thread. Then another one is rung for.
const PATIENCE: Duration = Duration::from_micros(50);

/// Keeps adders from ringing a bell that nobody needs.
///
/// An adder rings only if a worker sleeps and none is on its way already; a worker that was woken and sees more work
/// wakes the next. There is no fence: the adder asks after it has held the lock of the work, and whoever sleeps, or
/// has heard the bell, looks under the same lock afterwards. Whoever is the first of the two is seen by the other.
pub(crate) struct Gate {
    sleepers: AtomicUsize,
    /// When a sleeper was rung for that has not looked yet; [`NOBODY`] if there is none.
    rung: AtomicU64,
}

const NOBODY: u64 = 0;

/// Says that a worker sleeps, until it is dropped.
pub(crate) struct Sleeping<'a>(&'a Gate);

impl Gate {
    pub(crate) fn new() -> Self {
        Self { sleepers: AtomicUsize::new(0), rung: AtomicU64::new(NOBODY) }
    }

    /// Work has been made visible: is the caller to ring the bell?
    #[inline]
    pub(crate) fn opened(&self, now: Tick) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0 && self.rings(now)
    }

    fn rings(&self, now: Tick) -> bool {
        let rung = self.rung.load(Ordering::Relaxed);
        let waits = rung != NOBODY && now.since(Tick::from_nanos(rung)) < PATIENCE;
        let new = now.as_nanos().max(NOBODY + 1);
        // If another one comes between, it has rung, or has heard the bell and looks now.
        !waits && self.rung.compare_exchange(rung, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// A worker is about to sleep. It looks for work once more after this.
    pub(crate) fn enter(&self) -> Sleeping<'_> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        Sleeping(self)
    }

    /// The bell was heard. The worker looks for work after this.
    pub(crate) fn heard(&self) {
        self.rung.store(NOBODY, Ordering::Release);
    }

    /// Somebody sleeps.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0
    }

    /// Besides the caller, somebody sleeps.
    pub(crate) fn others_sleep(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 1
    }
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}
