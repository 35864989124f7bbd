//! What the queue knows of one key, and the atomic word that says where it stands.

mod word;

use crate::sync::{AtomicU64, Ordering, PlainU32, PlainU64};
use crate::tick::Tick;
use word::Phase;
pub(crate) use word::{Ticket, Word};

/// What an immediate add asks of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// The key was idle: put it into the lane of `priority`.
    Ready { priority: i32, ticket: Ticket },
    /// The key was queued at `from`: put it into the lane of `priority` too, the old entry is void.
    Raised { from: i32, priority: i32, ticket: Ticket },
    /// The key is being worked on and will come back when that is done.
    AfterDone,
    /// It was queued already.
    Merged,
}

/// What the end of the work asks of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    /// Nothing more to do.
    Idle,
    /// The key was added while it was worked on: put it into the lane of `priority`.
    Again { priority: i32, ticket: Ticket },
}

/// What the queue knows of one key. What every use of a key touches comes first, beside the reference count.
#[repr(C)]
pub(crate) struct Place<K> {
    word: AtomicU64,
    /// Since when the key has been queued or, when it is worked on, since when that; for the metrics.
    since: PlainU64,
    /// Rate-limited adds since the last `forget`.
    failures: PlainU32,
    /// When they expire if the key is idle.
    failures_expire: PlainU64,
    /// When a key that is being worked on was added.
    dirty_since: PlainU64,
    pub(crate) hash: u64,
    /// The timer's key while the waiting bit is set. Read and written only under the timers' lock.
    deadline: PlainU64,
    sequence: PlainU64,
    pub(crate) key: K,
}

impl<K> Place<K> {
    pub(crate) fn new(key: K, hash: u64) -> Self {
        Self {
            word: AtomicU64::new(Word::IDLE.bits()),
            since: PlainU64::new(0),
            failures: PlainU32::new(0),
            failures_expire: PlainU64::new(0),
            dirty_since: PlainU64::new(0),
            hash,
            deadline: PlainU64::new(0),
            sequence: PlainU64::new(0),
            key,
        }
    }

    #[inline]
    fn load(&self) -> Word {
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    /// Replaces `old` by `new`, or says what is there instead.
    #[inline]
    fn replace(&self, old: Word, new: Word) -> Result<(), Word> {
        self.word
            .compare_exchange(old.bits(), new.bits(), Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(Word::from_bits)
    }

    /// An add without a delay. `None`: the key has a timer, ask again under the timers' lock. The caller holds the
    /// inbox's lock.
    #[inline]
    pub(crate) fn add(&self, priority: i32, now: Tick) -> Option<Added> {
        let mut word = self.load();
        loop {
            if word.waiting() {
                return None;
            }
            match self.try_add(word, priority, now) {
                Ok(added) => return Some(added),
                Err(seen) => word = seen,
            }
        }
    }

    /// An add without a delay by the holder of the timers' lock, who has removed the timer if there was one. The caller
    /// holds the inbox's lock too.
    pub(crate) fn add_and_disarm(&self, priority: i32, now: Tick) -> Added {
        let mut word = self.load();
        loop {
            match self.try_add(word, priority, now) {
                Ok(added) => return added,
                Err(seen) => word = seen,
            }
        }
    }

    #[inline]
    fn try_add(&self, word: Word, priority: i32, now: Tick) -> Result<Added, Word> {
        // A key that waits is due now, at the higher of the two priorities.
        let wanted = if word.waiting() { priority.max(word.priority()) } else { priority };
        match word.phase() {
            Phase::Idle => {
                let next = word.step(Phase::Queued, wanted);
                // Whoever wins the exchange below publishes this store; a loser's is at most a moment off.
                self.since.store(now.as_nanos(), Ordering::Relaxed);
                self.replace(word, next)?;
                Ok(Added::Ready { priority: wanted, ticket: next.ticket() })
            }
            Phase::Queued if priority > word.priority() => {
                let next = word.step(Phase::Queued, priority);
                self.replace(word, next)?;
                Ok(Added::Raised { from: word.priority(), priority, ticket: next.ticket() })
            }
            Phase::Running => {
                self.dirty_since.store(now.as_nanos(), Ordering::Relaxed);
                self.replace(word, word.step(Phase::RunningDirty, wanted))?;
                Ok(Added::AfterDone)
            }
            Phase::RunningDirty if priority > word.priority() => {
                self.replace(word, word.step(Phase::RunningDirty, priority))?;
                Ok(Added::Merged)
            }
            Phase::Queued | Phase::RunningDirty => {
                // Written although it stays as it is, for the reason that `covers` gives.
                self.replace(word, word)?;
                Ok(Added::Merged)
            }
        }
    }

    /// Notes that the key waits for a timer, at the higher of the two priorities. The caller holds the timers' lock.
    /// `None`: it is queued already, a ready key never goes back to waiting. Otherwise: whether it waited before.
    pub(crate) fn arm(&self, priority: i32) -> Option<bool> {
        let mut word = self.load();
        loop {
            let armed = word.waiting();
            let next = match word.phase() {
                Phase::Queued | Phase::RunningDirty => return None,
                Phase::Idle | Phase::Running if armed && priority <= word.priority() => return Some(true),
                Phase::Idle | Phase::Running => word.wait(priority),
            };
            match self.replace(word, next) {
                Ok(()) => return Some(armed),
                Err(seen) => word = seen,
            }
        }
    }

    /// Raises the priority of a key that is ready, if this one is higher. `None`: it is not ready (any more). The caller
    /// holds the inbox's lock.
    pub(crate) fn raise(&self, priority: i32) -> Option<Added> {
        let mut word = self.load();
        loop {
            let (phase, from) = (word.phase(), word.priority());
            let (next, added) = match phase {
                Phase::Idle | Phase::Running => return None,
                Phase::Queued if priority > from => {
                    let next = word.step(phase, priority);
                    (next, Added::Raised { from, priority, ticket: next.ticket() })
                }
                Phase::RunningDirty if priority > from => (word.step(phase, priority), Added::Merged),
                Phase::Queued | Phase::RunningDirty => (word, Added::Merged),
            };
            match self.replace(word, next) {
                Ok(()) => return Some(added),
                Err(seen) => word = seen,
            }
        }
    }

    /// Forgets the timer without queueing the key (the queue shuts down). The caller holds the timers' lock.
    pub(crate) fn disarm(&self) {
        let mut word = self.load();
        while word.waiting() {
            match self.replace(word, word.step(word.phase(), 0)) {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// The priority at which the key waits for its timer.
    pub(crate) fn waiting_priority(&self) -> Option<i32> {
        let word = self.load();
        word.waiting().then(|| word.priority())
    }

    /// Takes the key out of the lane of `priority` to be worked on, or says that this entry is void.
    #[inline]
    pub(crate) fn claim(&self, priority: i32, ticket: Ticket) -> bool {
        // What the word is if the entry is good: the line comes to this core once, to be written.
        let queued = Word::queued(priority, ticket);
        self.replace(queued, queued.step(Phase::Running, 0)).is_ok()
    }

    /// The work is done.
    #[inline]
    pub(crate) fn finish(&self) -> Finished {
        let mut word = self.load();
        loop {
            let (next, finished) = match word.phase() {
                Phase::RunningDirty => {
                    let next = word.step(Phase::Queued, word.priority());
                    self.since.store(self.dirty_since.load(Ordering::Relaxed), Ordering::Relaxed);
                    (next, Finished::Again { priority: word.priority(), ticket: next.ticket() })
                }
                // A timer set while it ran goes on.
                Phase::Running => (word.rest(), Finished::Idle),
                Phase::Idle | Phase::Queued => return Finished::Idle,
            };
            match self.replace(word, next) {
                Ok(()) => return finished,
                Err(seen) => word = seen,
            }
        }
    }

    /// Nobody works on the key, and it is neither queued nor waiting.
    pub(crate) fn is_idle(&self) -> bool {
        let word = self.load();
        word.phase() == Phase::Idle && !word.waiting()
    }

    /// An add at `priority` without a delay changes nothing. Whoever takes the key next sees what the caller did before:
    /// a plain load would not see to that.
    #[inline]
    pub(crate) fn covers(&self, priority: i32) -> bool {
        let word = Word::from_bits(self.word.fetch_or(0, Ordering::AcqRel));
        matches!(word.phase(), Phase::Queued | Phase::RunningDirty) && word.priority() >= priority
    }

    /// When the work on the key began, if it goes on.
    pub(crate) fn running_since(&self) -> Option<Tick> {
        matches!(self.load().phase(), Phase::Running | Phase::RunningDirty).then(|| self.since())
    }

    /// Since when the key has been queued or worked on, whichever it is.
    #[inline]
    pub(crate) fn since(&self) -> Tick {
        Tick::from_nanos(self.since.load(Ordering::Relaxed))
    }

    /// The work begins.
    #[inline]
    pub(crate) fn start(&self, now: Tick) {
        self.since.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn timer(&self) -> (Tick, u64) {
        let deadline = Tick::from_nanos(self.deadline.load(Ordering::Relaxed));
        (deadline, self.sequence.load(Ordering::Relaxed))
    }

    pub(crate) fn set_timer(&self, deadline: Tick, sequence: u64) {
        self.deadline.store(deadline.as_nanos(), Ordering::Relaxed);
        self.sequence.store(sequence, Ordering::Relaxed);
    }

    /// One more failure: how many there were before.
    pub(crate) fn fail(&self) -> u32 {
        self.failures
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(1)))
            .unwrap_or(u32::MAX)
    }

    /// Says until when the failures of the key count while it is idle.
    pub(crate) fn remember_failures_until(&self, expiry: Tick) {
        self.failures_expire.store(expiry.as_nanos(), Ordering::Relaxed);
    }

    /// When the failures of the key expire if it is idle then.
    pub(crate) fn failures_expire(&self) -> Tick {
        Tick::from_nanos(self.failures_expire.load(Ordering::Relaxed))
    }

    /// Failures of a key that is being worked on.
    pub(crate) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Failures at `now`: those of an idle key expire.
    pub(crate) fn failures_at(&self, now: Tick) -> u32 {
        match self.failures() {
            failures if failures > 0 && self.is_idle() && self.failures_expire() <= now => 0,
            failures => failures,
        }
    }

    pub(crate) fn forget(&self) {
        // The common case, a success after a success, writes nothing.
        if self.failures() != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }
}
