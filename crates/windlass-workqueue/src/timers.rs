//! Delayed keys by deadline.

use crate::key_state::KeyState;
use crate::sync::Arc;
use crate::timestamp::Timestamp;
use std::collections::BTreeMap;

/// At most one timer for each key. An earlier deadline replaces a later deadline, and an immediate add
/// removes the timer. A requeue after ten hours therefore leaves no timer behind if a change comes first.
pub(crate) struct Timers<K> {
    /// Timers by deadline; equal deadlines in order of insertion.
    by_deadline: BTreeMap<(Timestamp, u64), Arc<KeyState<K>>>,
    last_sequence: u64,
}

impl<K> Timers<K> {
    pub(crate) fn new() -> Self {
        Self { by_deadline: BTreeMap::new(), last_sequence: 0 }
    }

    /// Sets a timer for a key that has none.
    pub(crate) fn set(&mut self, state: &Arc<KeyState<K>>, deadline: Timestamp) {
        self.last_sequence += 1;
        state.set_timer(deadline, self.last_sequence);
        self.by_deadline.insert((deadline, self.last_sequence), Arc::clone(state));
    }

    /// Moves the key's timer to `deadline` if that is earlier.
    pub(crate) fn bring_forward(&mut self, state: &Arc<KeyState<K>>, deadline: Timestamp) {
        if deadline < state.timer().0 {
            self.remove(state);
            self.set(state, deadline);
        }
    }

    /// Removes the key's timer.
    pub(crate) fn remove(&mut self, state: &KeyState<K>) {
        self.by_deadline.remove(&state.timer());
    }

    /// Removes and returns the key with the earliest deadline, if that is not after `now`.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<Arc<KeyState<K>>> {
        let first = self.by_deadline.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.by_deadline.first_key_value().map(|(&(deadline, _), _)| deadline)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_deadline.len()
    }
}
