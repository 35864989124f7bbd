//! Delayed keys, ordered by when they are due.

use crate::slot::Place;
use crate::sync::Arc;
use crate::tick::Tick;
use std::collections::BTreeMap;

/// At most one timer for each slot: an earlier one replaces a later one, and a key that is added meanwhile takes its
/// timer out. So a reconcile that asks to be repeated in ten hours leaves nothing behind when a change comes first.
pub(crate) struct Timers<K> {
    /// By deadline, and by the order in which they were set among equals.
    due: BTreeMap<(Tick, u64), Arc<Place<K>>>,
    sequence: u64,
}

impl<K> Timers<K> {
    pub(crate) fn new() -> Self {
        Self { due: BTreeMap::new(), sequence: 0 }
    }

    /// Sets the slot's first timer.
    pub(crate) fn set(&mut self, place: &Arc<Place<K>>, deadline: Tick) {
        self.sequence += 1;
        place.set_timer(deadline, self.sequence);
        self.due.insert((deadline, self.sequence), Arc::clone(place));
    }

    /// Moves the slot's timer if `deadline` is earlier.
    pub(crate) fn bring_forward(&mut self, place: &Arc<Place<K>>, deadline: Tick) {
        if deadline < place.timer().0 {
            self.remove(place);
            self.set(place, deadline);
        }
    }

    pub(crate) fn remove(&mut self, place: &Place<K>) {
        self.due.remove(&place.timer());
    }

    /// The next slot that is due, without its timer.
    pub(crate) fn pop(&mut self, now: Tick) -> Option<Arc<Place<K>>> {
        let first = self.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        self.due.first_key_value().map(|(&(deadline, _), _)| deadline)
    }

    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }
}
