//! The layout of a slot's state word.

/// Tells an entry in a lane that is still good from one that a raise made void.
pub(crate) type Ticket = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Queued,
    Running,
    /// Being worked on, and added again meanwhile.
    RunningDirty,
}

/// `priority (32) | ticket (29) | waiting (1) | phase (2)`.
///
/// The priority is the one at which the key is queued, will be queued after the work on it, or waits for its timer;
/// the three exclude each other. The ticket changes with every step, so that an exchange never mistakes an old state
/// for a new one that looks alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

const PHASE: u64 = 0b11;
const WAITING: u64 = 0b100;
const TICKET_SHIFT: u32 = 3;
const TICKET: u64 = (1 << 29) - 1;
const PRIORITY_SHIFT: u32 = 32;

impl Word {
    pub(crate) const IDLE: Self = Self(0);

    /// The word of a key that is queued.
    #[inline]
    pub(crate) const fn queued(priority: i32, ticket: Ticket) -> Self {
        Self::new(Phase::Queued, false, priority, ticket as u64)
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
    pub(crate) const fn phase(self) -> Phase {
        match self.0 & PHASE {
            0 => Phase::Idle,
            1 => Phase::Queued,
            2 => Phase::Running,
            _ => Phase::RunningDirty,
        }
    }

    #[inline]
    pub(crate) const fn waiting(self) -> bool {
        self.0 & WAITING != 0
    }

    #[inline]
    pub(crate) const fn ticket(self) -> Ticket {
        ((self.0 >> TICKET_SHIFT) & TICKET) as Ticket
    }

    #[inline]
    pub(crate) const fn priority(self) -> i32 {
        (self.0 >> PRIORITY_SHIFT).cast_signed() as i32
    }

    /// The next word: another phase, a new ticket, no timer.
    #[inline]
    pub(crate) const fn step(self, phase: Phase, priority: i32) -> Self {
        self.next(phase, false, priority)
    }

    /// The next word: the same phase, with a timer.
    #[inline]
    pub(crate) const fn wait(self, priority: i32) -> Self {
        self.next(self.phase(), true, priority)
    }

    /// The next word after the work: idle, the timer as it was.
    #[inline]
    pub(crate) const fn rest(self) -> Self {
        self.next(Phase::Idle, self.waiting(), self.priority())
    }

    #[inline]
    const fn next(self, phase: Phase, waiting: bool, priority: i32) -> Self {
        Self::new(phase, waiting, priority, (self.ticket() as u64 + 1) & TICKET)
    }

    #[inline]
    const fn new(phase: Phase, waiting: bool, priority: i32, ticket: u64) -> Self {
        let waiting = if waiting { WAITING } else { 0 };
        Self(
            ((priority.cast_unsigned() as u64) << PRIORITY_SHIFT)
                | (ticket << TICKET_SHIFT)
                | waiting
                | phase as u64,
        )
    }
}
