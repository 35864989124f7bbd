//! A key in flight.

use super::Handle;
use crate::AddOptions;
use crate::queue::InFlight;
use std::hash::Hash;
use std::sync::Arc;

/// A key that was handed out to a worker. No other worker gets the key until [`done`](Self::done) is called or the item is
/// dropped, whether the worker returns, fails, or panics.
#[must_use = "dropping an item marks its key as done"]
pub struct Item<K> {
    handle: Arc<Handle<K>>,
    /// `None` only during the drop.
    in_flight: Option<InFlight<K>>,
}

impl<K> Item<K> {
    pub(super) fn new(handle: Arc<Handle<K>>, in_flight: InFlight<K>) -> Self {
        Self { handle, in_flight: Some(in_flight) }
    }

    fn in_flight(&self) -> &InFlight<K> {
        match &self.in_flight {
            Some(in_flight) => in_flight,
            None => unreachable!("it is taken only when the item is dropped"),
        }
    }

    /// Returns the key.
    pub fn key(&self) -> &K {
        self.in_flight().key()
    }

    /// Returns the priority at which the key was queued. A retry should keep the priority.
    pub fn priority(&self) -> i32 {
        self.in_flight().priority()
    }

    /// Resets the failures of the key, as [`WorkQueue::forget`](crate::WorkQueue::forget) does. Call `forget`
    /// after a success.
    pub fn forget(&self) {
        self.in_flight().forget();
    }

    /// Returns the failures of the key: rate-limited adds since the last [`forget`](Self::forget).
    pub fn num_requeues(&self) -> u32 {
        self.in_flight().num_requeues()
    }

    /// Adds the key again, as [`WorkQueue::add_with`](crate::WorkQueue::add_with) does, without a look-up.
    /// The key is handed out after this item is done, and after a given delay.
    pub fn requeue(&self, options: AddOptions)
    where
        K: Hash,
    {
        self.handle.requeue(self.in_flight(), options);
    }

    /// Marks the work on the key as done, with or without success. A key that was added since the hand-out is
    /// ready again. Dropping the item does the same.
    pub fn done(self) {}
}

impl<K> Drop for Item<K> {
    fn drop(&mut self) {
        if let Some(in_flight) = self.in_flight.take() {
            self.handle.done(in_flight);
        }
    }
}

impl<K: std::fmt::Debug> std::fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Item").field("key", self.key()).field("priority", &self.priority()).finish()
    }
}
