//! The seat of the one sleeping worker that watches the clock.

use crate::gate::Gate;
use crate::sync::{AtomicBool, Ordering};

/// Of all workers that sleep, one watches the next deadline: it has the seat.
///
/// No deadline goes unwatched while a worker sleeps. Whoever gets up while there is one wakes another to sit down;
/// whoever sets one while nobody sits wakes a sleeper too; and whoever sits down looks for it. All three exchange the
/// same flag: of any two, the later sees what the earlier did before.
pub(crate) struct Seat {
    taken: AtomicBool,
}

impl Seat {
    pub(crate) fn new() -> Self {
        Self { taken: AtomicBool::new(false) }
    }

    /// Sits down, if the seat is free. The caller has entered the gate before, and asks for the deadline afterwards.
    pub(crate) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }

    /// Gets up: whether somebody else sleeps, who may have found the seat taken. The caller is still in the gate, and
    /// asks for the deadline afterwards.
    pub(crate) fn leave(&self, gate: &Gate) -> bool {
        self.taken.swap(false, Ordering::AcqRel);
        gate.others_sleep()
    }

    /// Somebody sits here. The caller has set a deadline before.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.fetch_or(false, Ordering::AcqRel)
    }
}
