//! Sleeping workers: when an adder wakes a worker, and which worker holds the timer.

use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::timestamp::Timestamp;
use std::time::Duration;

/// If a woken worker has not looked for work after this time, adders wake another worker. A tokio task that
/// wakes a second task on the same thread runs on first: a woken worker may have to wait for the adder that
/// woke the worker.
const WAKE_ANOTHER_AFTER: Duration = Duration::from_micros(50);

const NONE_WOKEN: u64 = 0;

/// Spares adders needless wake-ups: an adder wakes a worker only if a worker sleeps and every woken worker
/// has looked for work. A woken worker that sees more work wakes the next worker.
///
/// No fence is needed. An adder asks after it has released the lock of the work; a worker looks under the
/// same lock after it has announced its sleep, or reported that it is awake. The second holder of the lock
/// sees the first holder's write.
pub(crate) struct Sleepers {
    count: AtomicUsize,
    /// When a worker was woken that has not looked yet, or [`NONE_WOKEN`].
    woken_at: AtomicU64,
}

/// Counts a worker as sleeping until the guard is dropped.
pub(crate) struct Sleeping<'a>(&'a Sleepers);

impl Sleepers {
    pub(crate) fn new() -> Self {
        Self { count: AtomicUsize::new(0), woken_at: AtomicU64::new(NONE_WOKEN) }
    }

    /// Returns whether the caller must wake a worker for new work. The work is already visible.
    #[inline]
    pub(crate) fn must_wake(&self, now: Timestamp) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && self.claim_wake(now)
    }

    fn claim_wake(&self, now: Timestamp) -> bool {
        let woken_at = self.woken_at.load(Ordering::Relaxed);
        let elapsed = now.since(Timestamp::from_nanos(woken_at));
        if woken_at != NONE_WOKEN && elapsed < WAKE_ANOTHER_AFTER {
            return false;
        }
        let now = now.as_nanos().max(NONE_WOKEN + 1);
        // If the exchange fails, another adder wakes a worker, or a woken worker is about to look.
        self.woken_at.compare_exchange(woken_at, now, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Announces that a worker is about to sleep. The worker must look for work once more afterwards.
    pub(crate) fn sleep(&self) -> Sleeping<'_> {
        self.count.fetch_add(1, Ordering::Relaxed);
        Sleeping(self)
    }

    /// Reports that a woken worker is awake. The worker must look for work afterwards.
    pub(crate) fn awake(&self) {
        self.woken_at.store(NONE_WOKEN, Ordering::Release);
    }

    /// Returns whether a worker sleeps.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Returns whether a worker sleeps besides the caller.
    pub(crate) fn any_other(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 1
    }
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The holder of the timer: at most one sleeping worker sleeps until the next deadline, and all other workers
/// sleep until woken.
///
/// While a worker sleeps, every deadline is watched. A worker that gives up the timer wakes another worker
/// for the timer; a thread that sets a deadline while no worker holds the timer wakes a sleeper; and a worker
/// that takes the timer reads the deadline. All three are read-modify-writes of one flag: the later access
/// sees all writes before the earlier access.
pub(crate) struct TimerWatch {
    taken: AtomicBool,
}

impl TimerWatch {
    pub(crate) fn new() -> Self {
        Self { taken: AtomicBool::new(false) }
    }

    /// Takes the timer if no worker holds it. The caller is counted as sleeping, and reads the deadline
    /// afterwards.
    pub(crate) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }

    /// Gives the timer up. Returns whether another worker sleeps; that worker may have found the timer taken.
    /// The caller is still counted as sleeping, and reads the deadline afterwards.
    pub(crate) fn give_up(&self, sleepers: &Sleepers) -> bool {
        self.taken.swap(false, Ordering::AcqRel);
        sleepers.any_other()
    }

    /// Returns whether a worker holds the timer. The caller has set a deadline before this.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.fetch_or(false, Ordering::AcqRel)
    }
}
