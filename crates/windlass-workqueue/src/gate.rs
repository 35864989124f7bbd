//! Whom to wake, and whether to wake anybody at all.

use crate::sync::{AtomicBool, AtomicUsize, Ordering, fence};

/// Keeps adders from ringing a bell that nobody needs.
///
/// An adder rings only if a worker sleeps and none is on its way already; a worker that was woken and sees more work
/// wakes the next. The fences pair up: either the adder sees the sleeper, or the sleeper, who looks once more after
/// it has said that it sleeps, sees the work.
pub(crate) struct Gate {
    sleepers: AtomicUsize,
    /// A sleeper has been rung for and has not looked yet.
    waking: AtomicBool,
}

/// Says that a worker sleeps, until it is dropped.
pub(crate) struct Sleeping<'a>(&'a Gate);

impl Gate {
    pub(crate) fn new() -> Self {
        Self { sleepers: AtomicUsize::new(0), waking: AtomicBool::new(false) }
    }

    /// Work has been made visible: is the caller to ring the bell?
    pub(crate) fn opened(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleepers.load(Ordering::Relaxed) > 0 && !self.waking.swap(true, Ordering::AcqRel)
    }

    /// A worker is about to sleep. It looks for work once more after this.
    pub(crate) fn enter(&self) -> Sleeping<'_> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Sleeping(self)
    }

    /// The bell was heard. The worker looks for work after this.
    pub(crate) fn heard(&self) {
        self.waking.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    #[cfg(not(loom))]
    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0
    }

    /// A sleeper has got up from the seat that only one can have: is there another one who might want it? The fence
    /// pairs with that of `enter`: either this sees the other, or the other sees the free seat.
    #[cfg(not(loom))]
    pub(crate) fn others_sleep(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleepers.load(Ordering::Relaxed) > 1
    }
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}
