//! The state of one key, and the transitions of the state.

mod state_word;

use crate::sync::{AtomicU64, Ordering, PlainU32, PlainU64};
use crate::timestamp::Timestamp;
use state_word::Activity;
pub(crate) use state_word::{StateWord, Version};

/// The effect of an immediate add on a key, and the duty of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddEffect {
    /// The key was idle. The caller pushes the key to the lane of `priority`.
    Queued { priority: i32, version: Version },
    /// The key was queued at the lower priority `from`. The entry at that priority is now stale. The caller
    /// pushes the key to the lane of `priority`.
    Raised { from: i32, priority: i32, version: Version },
    /// The key is in flight and will be queued when the worker is done.
    QueuedAfterDone,
    /// The key was already queued, or already dirty.
    Merged,
}

/// The effect of the end of a key's work on the key, and the duty of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoneEffect {
    /// The key is not queued.
    Idle,
    /// The key was dirty. The caller pushes the key to the lane of `priority`.
    Requeued { priority: i32, version: Version },
}

/// The state of one key. The fields that every use of a key touches come first, next to the reference count.
#[repr(C)]
pub(crate) struct KeyState<K> {
    word: AtomicU64,
    /// The time at which the key was queued or, for a key in flight, handed out. For the metrics.
    since: PlainU64,
    /// Rate-limited adds since the last `forget`.
    failures: PlainU32,
    /// When `failures` expires if the key is idle then.
    failures_expire: PlainU64,
    /// When a dirty key was added.
    dirty_since: PlainU64,
    pub(crate) hash: u64,
    /// The timer's key in `Timers` while the key is delayed. Accessed only under the timers' lock.
    deadline: PlainU64,
    sequence: PlainU64,
    pub(crate) key: K,
}

impl<K> KeyState<K> {
    pub(crate) fn new(key: K, hash: u64) -> Self {
        Self {
            word: AtomicU64::new(StateWord::IDLE.bits()),
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
    fn load(&self) -> StateWord {
        StateWord::from_bits(self.word.load(Ordering::Acquire))
    }

    /// Replaces `old` by `new`, or returns the word that is there instead.
    #[inline]
    fn replace(&self, old: StateWord, new: StateWord) -> Result<(), StateWord> {
        self.word
            .compare_exchange(old.bits(), new.bits(), Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(StateWord::from_bits)
    }

    /// Adds the key without a delay. Returns `None` if the key has a timer: then the caller must take the timers' lock
    /// and call [`add_and_clear_delay`](Self::add_and_clear_delay). The caller holds the inbox's lock.
    #[inline]
    pub(crate) fn add(&self, priority: i32, now: Timestamp) -> Option<AddEffect> {
        let mut word = self.load();
        loop {
            if word.is_delayed() {
                return None;
            }
            match self.try_add(word, priority, now) {
                Ok(effect) => return Some(effect),
                Err(seen) => word = seen,
            }
        }
    }

    /// Adds the key without a delay and clears the timer bit. The caller holds the timers' and the inbox's
    /// locks and has removed the timer.
    pub(crate) fn add_and_clear_delay(&self, priority: i32, now: Timestamp) -> AddEffect {
        let mut word = self.load();
        loop {
            match self.try_add(word, priority, now) {
                Ok(effect) => return effect,
                Err(seen) => word = seen,
            }
        }
    }

    #[inline]
    fn try_add(&self, word: StateWord, priority: i32, now: Timestamp) -> Result<AddEffect, StateWord> {
        // A delayed key becomes due now, at the higher of the two priorities.
        let wanted = if word.is_delayed() { priority.max(word.priority()) } else { priority };
        match word.activity() {
            Activity::Idle => {
                let next = word.become_active(Activity::Queued, wanted);
                // The winner of the compare-exchange publishes this store. A loser's value is off by a moment at most.
                self.since.store(now.as_nanos(), Ordering::Relaxed);
                self.replace(word, next)?;
                Ok(AddEffect::Queued { priority: wanted, version: next.version() })
            }
            Activity::Queued if priority > word.priority() => {
                let next = word.become_active(Activity::Queued, priority);
                self.replace(word, next)?;
                Ok(AddEffect::Raised { from: word.priority(), priority, version: next.version() })
            }
            Activity::InFlight => {
                self.dirty_since.store(now.as_nanos(), Ordering::Relaxed);
                self.replace(word, word.become_active(Activity::InFlightDirty, wanted))?;
                Ok(AddEffect::QueuedAfterDone)
            }
            Activity::InFlightDirty if priority > word.priority() => {
                self.replace(word, word.become_active(Activity::InFlightDirty, priority))?;
                Ok(AddEffect::Merged)
            }
            Activity::Queued | Activity::InFlightDirty => {
                // A write without a change, for the reason given at `covers`.
                self.replace(word, word)?;
                Ok(AddEffect::Merged)
            }
        }
    }

    /// Marks the key as delayed, at the higher of the two priorities. Returns whether the key had a timer
    /// before, or `None` if the key is queued or dirty: a ready key never becomes delayed. The caller holds
    /// the timers' lock.
    pub(crate) fn delay(&self, priority: i32) -> Option<bool> {
        let mut word = self.load();
        loop {
            let delayed = word.is_delayed();
            let next = match word.activity() {
                Activity::Queued | Activity::InFlightDirty => return None,
                Activity::Idle | Activity::InFlight if delayed && priority <= word.priority() => {
                    return Some(true);
                }
                Activity::Idle | Activity::InFlight => word.become_delayed(priority),
            };
            match self.replace(word, next) {
                Ok(()) => return Some(delayed),
                Err(seen) => word = seen,
            }
        }
    }

    /// Raises the priority of a queued or dirty key if `priority` is higher. Returns `None` if the key is neither. The
    /// caller holds the inbox's lock.
    pub(crate) fn raise(&self, priority: i32) -> Option<AddEffect> {
        let mut word = self.load();
        loop {
            let (activity, from) = (word.activity(), word.priority());
            let (next, effect) = match activity {
                Activity::Idle | Activity::InFlight => return None,
                Activity::Queued if priority > from => {
                    let next = word.become_active(activity, priority);
                    (next, AddEffect::Raised { from, priority, version: next.version() })
                }
                Activity::InFlightDirty if priority > from => {
                    (word.become_active(activity, priority), AddEffect::Merged)
                }
                Activity::Queued | Activity::InFlightDirty => (word, AddEffect::Merged),
            };
            match self.replace(word, next) {
                Ok(()) => return Some(effect),
                Err(seen) => word = seen,
            }
        }
    }

    /// Clears the timer bit without queueing the key. The caller holds the timers' lock and shuts the queue down.
    pub(crate) fn clear_delay(&self) {
        let mut word = self.load();
        while word.is_delayed() {
            match self.replace(word, word.become_active(word.activity(), 0)) {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// Returns the priority of a delayed key.
    pub(crate) fn delayed_priority(&self) -> Option<i32> {
        let word = self.load();
        word.is_delayed().then(|| word.priority())
    }

    /// Marks the key as in flight if `version` is its current stay in the lane of `priority`. Returns `false` if the lane
    /// entry is stale.
    #[inline]
    pub(crate) fn claim(&self, priority: i32, version: Version) -> bool {
        // No load first: the cache line comes to this core once, for writing.
        let queued = StateWord::queued(priority, version);
        self.replace(queued, queued.become_active(Activity::InFlight, 0)).is_ok()
    }

    /// Ends the work on the key.
    #[inline]
    pub(crate) fn done(&self) -> DoneEffect {
        let mut word = self.load();
        loop {
            let (next, effect) = match word.activity() {
                Activity::InFlightDirty => {
                    let next = word.become_active(Activity::Queued, word.priority());
                    self.since.store(self.dirty_since.load(Ordering::Relaxed), Ordering::Relaxed);
                    (next, DoneEffect::Requeued { priority: word.priority(), version: next.version() })
                }
                Activity::InFlight => (word.become_idle(), DoneEffect::Idle),
                Activity::Idle | Activity::Queued => return DoneEffect::Idle,
            };
            match self.replace(word, next) {
                Ok(()) => return effect,
                Err(seen) => word = seen,
            }
        }
    }

    /// Returns whether the key is neither queued, delayed nor in flight.
    pub(crate) fn is_idle(&self) -> bool {
        let word = self.load();
        word.activity() == Activity::Idle && !word.is_delayed()
    }

    /// Returns whether an immediate add at `priority` has no effect.
    ///
    /// A read-modify-write, not a load: the worker that claims the key next must see the caller's writes
    /// before the add, and only a write to the word synchronises with that worker.
    #[inline]
    pub(crate) fn covers(&self, priority: i32) -> bool {
        StateWord::from_bits(self.word.fetch_or(0, Ordering::AcqRel)).covers(priority)
    }

    /// Returns the time of the hand-out of a key in flight.
    pub(crate) fn in_flight_since(&self) -> Option<Timestamp> {
        let in_flight = matches!(self.load().activity(), Activity::InFlight | Activity::InFlightDirty);
        in_flight.then(|| self.since())
    }

    /// Returns the time at which the key was queued or, for a key in flight, handed out.
    #[inline]
    pub(crate) fn since(&self) -> Timestamp {
        Timestamp::from_nanos(self.since.load(Ordering::Relaxed))
    }

    /// Records that the key has been handed out.
    #[inline]
    pub(crate) fn set_handed_out(&self, now: Timestamp) {
        self.since.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Returns the timer's deadline and sequence number. The caller holds the timers' lock.
    pub(crate) fn timer(&self) -> (Timestamp, u64) {
        let deadline = Timestamp::from_nanos(self.deadline.load(Ordering::Relaxed));
        (deadline, self.sequence.load(Ordering::Relaxed))
    }

    /// Sets the timer's deadline and sequence number. The caller holds the timers' lock.
    pub(crate) fn set_timer(&self, deadline: Timestamp, sequence: u64) {
        self.deadline.store(deadline.as_nanos(), Ordering::Relaxed);
        self.sequence.store(sequence, Ordering::Relaxed);
    }

    /// Counts a failure and returns the number of earlier failures.
    pub(crate) fn fail(&self) -> u32 {
        self.failures
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(1)))
            .unwrap_or(u32::MAX)
    }

    /// Sets when the failures expire if the key is idle then.
    pub(crate) fn set_failures_expire(&self, expiry: Timestamp) {
        self.failures_expire.store(expiry.as_nanos(), Ordering::Relaxed);
    }

    /// Returns the counted failures, including expired failures.
    pub(crate) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns the failures that have not expired at `now`.
    pub(crate) fn failures_at(&self, now: Timestamp) -> u32 {
        let expiry = Timestamp::from_nanos(self.failures_expire.load(Ordering::Relaxed));
        match self.failures() {
            failures if failures > 0 && expiry <= now && self.is_idle() => 0,
            failures => failures,
        }
    }

    /// Resets the failures.
    pub(crate) fn forget(&self) {
        // In the common case, a success after a success, no write is needed.
        if self.failures() != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }
}
