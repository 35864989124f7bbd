//! Two copies of the state: readers read one while the writer writes the other.
//!
//! A reader takes a shared lock on the copy that is published and never waits for it: a writer locks only the
//! copy that is not published. Between reading which one that is and locking it, a reader may be overtaken by a
//! publication; its `try_read` then fails and it looks again. The writer waits for readers that linger in the copy
//! it wants, who only ever clone counts there.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use super::state::{Hasher, Operation, State};

#[derive(Debug)]
pub(super) struct Copies {
    states: [RwLock<State>; 2],
    published: AtomicUsize,
}

impl Copies {
    pub(super) fn new(hasher: &Hasher) -> Self {
        let states = [(), ()].map(|()| RwLock::new(State::new(hasher.clone())));
        Self { states, published: AtomicUsize::new(0) }
    }

    /// Reads the published copy.
    pub(super) fn read<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        loop {
            let published = self.published.load(Ordering::Acquire);
            if let Some(state) = self.states[published].try_read() {
                return read(&state);
            }
            std::hint::spin_loop();
        }
    }

    /// Writes the copy that is not published and publishes it. `log` holds the operations that it lacks, and
    /// afterwards those that the other one lacks. There must be only one writer.
    pub(super) fn write<R>(
        &self,
        log: &mut Vec<Operation>,
        write: impl FnOnce(&mut State, &mut Vec<Operation>) -> R,
    ) -> R {
        let published = self.published.load(Ordering::Acquire);
        let hidden = 1 - published;
        let mut state = self.states[hidden].write();
        log.drain(..).for_each(|operation| state.apply(operation));
        let answer = write(&mut state, log);
        drop(state);
        if log.is_empty() {
            return answer;
        }
        self.published.store(hidden, Ordering::Release);
        // Usually nobody is left in the other copy: bring it up to date now, so that it lets old objects go.
        if let Some(mut state) = self.states[published].try_write() {
            log.drain(..).for_each(|operation| state.apply(operation));
        }
        answer
    }
}
