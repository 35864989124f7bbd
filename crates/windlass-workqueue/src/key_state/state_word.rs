//! The bit layout of a key's state word.

/// Identifies one stay of a key in a lane. An entry with another version than the key's current version is
/// stale.
pub(crate) type Version = u32;

/// The activity of a key: idle, queued or in flight. A delay is a separate bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Neither queued nor in flight.
    Idle,
    /// In a lane.
    Queued,
    /// Handed out to a worker.
    InFlight,
    /// Handed out to a worker, and added again since.
    InFlightDirty,
}

/// `priority (32) | version (29) | delayed (1) | activity (2)`.
///
/// The priority of a key that is queued, will be queued when the worker is done, or is delayed. At most one
/// of the three applies at a time. Every transition increments the version: a compare-exchange cannot mistake
/// an old state for a new state with the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateWord(u64);

const ACTIVITY: u64 = 0b11;
const DELAYED: u64 = 0b100;
const VERSION_SHIFT: u32 = 3;
const VERSION: u64 = (1 << 29) - 1;
const PRIORITY_SHIFT: u32 = 32;

impl StateWord {
    pub(crate) const IDLE: Self = Self(0);

    /// Returns the word of a queued key.
    #[inline]
    pub(crate) const fn queued(priority: i32, version: Version) -> Self {
        Self::new(Activity::Queued, false, priority, version as u64)
    }

    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn activity(self) -> Activity {
        match self.0 & ACTIVITY {
            0 => Activity::Idle,
            1 => Activity::Queued,
            2 => Activity::InFlight,
            _ => Activity::InFlightDirty,
        }
    }

    /// Returns whether the key has a timer.
    #[inline]
    pub(crate) const fn is_delayed(self) -> bool {
        self.0 & DELAYED != 0
    }

    #[inline]
    pub(crate) const fn version(self) -> Version {
        ((self.0 >> VERSION_SHIFT) & VERSION) as Version
    }

    #[inline]
    pub(crate) const fn priority(self) -> i32 {
        (self.0 >> PRIORITY_SHIFT).cast_signed() as i32
    }

    /// Returns whether an immediate add at `priority` would have no effect.
    #[inline]
    pub(crate) const fn covers(self, priority: i32) -> bool {
        matches!(self.activity(), Activity::Queued | Activity::InFlightDirty) && self.priority() >= priority
    }

    /// Returns the next word with a new activity and without a timer.
    #[inline]
    pub(crate) const fn become_active(self, activity: Activity, priority: i32) -> Self {
        self.next(activity, false, priority)
    }

    /// Returns the next word with the same activity and a timer.
    #[inline]
    pub(crate) const fn become_delayed(self, priority: i32) -> Self {
        self.next(self.activity(), true, priority)
    }

    /// Returns the next word when a worker is done: idle, with the timer of a delayed key.
    #[inline]
    pub(crate) const fn become_idle(self) -> Self {
        self.next(Activity::Idle, self.is_delayed(), self.priority())
    }

    #[inline]
    const fn next(self, activity: Activity, delayed: bool, priority: i32) -> Self {
        Self::new(activity, delayed, priority, (self.version() as u64 + 1) & VERSION)
    }

    #[inline]
    const fn new(activity: Activity, delayed: bool, priority: i32, version: u64) -> Self {
        let delayed = if delayed { DELAYED } else { 0 };
        Self(
            ((priority.cast_unsigned() as u64) << PRIORITY_SHIFT)
                | (version << VERSION_SHIFT)
                | delayed
                | activity as u64,
        )
    }
}
