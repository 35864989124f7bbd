//! A key in a worker's hands.

use crate::AddOptions;
use crate::queue::Lease;
use crate::work_queue::Handle;
use std::sync::Arc;

/// A key that was handed out, and is handed to nobody else until this is dropped.
pub struct Item<K> {
    handle: Arc<Handle<K>>,
    /// Always there, but while it is dropped.
    lease: Option<Lease<K>>,
}

impl<K> Item<K> {
    pub(crate) fn new(handle: Arc<Handle<K>>, lease: Lease<K>) -> Self {
        Self { handle, lease: Some(lease) }
    }

    fn lease(&self) -> &Lease<K> {
        match &self.lease {
            Some(lease) => lease,
            None => unreachable!("the lease is taken only when the item is dropped"),
        }
    }

    /// The key.
    pub fn key(&self) -> &K {
        self.lease().key()
    }

    /// The priority at which it was queued; a retry keeps it unless there is a reason to change it.
    pub fn priority(&self) -> i32 {
        self.lease().priority()
    }

    /// The work went well: ends the key's row of failures.
    pub fn forget(&self) {
        self.lease().forget();
    }

    /// Failures of the key in a row.
    pub fn num_requeues(&self) -> u32 {
        self.lease().num_requeues()
    }

    /// Adds the key again: it comes back when this item is done, or later. The same as
    /// [`WorkQueue::add_with`](crate::WorkQueue::add_with), without looking the key up.
    pub fn requeue(&self, options: AddOptions)
    where
        K: std::hash::Hash,
    {
        self.handle.requeue(self.lease(), options);
    }

    /// The work is done, well or not. The same as dropping the item.
    pub fn done(self) {}
}

impl<K> Drop for Item<K> {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.handle.done(lease);
        }
    }
}

impl<K: std::fmt::Debug> std::fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Item").field("key", self.key()).field("priority", &self.priority()).finish()
    }
}
