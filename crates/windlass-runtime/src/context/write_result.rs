//! The results of writes.

use std::{ops::Deref, sync::Arc};

/// The effect of a write, as controller-runtime's `OperationResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationResult {
    /// The object was created.
    Created,
    /// The object, or the status of the object, was changed.
    Updated,
    /// The object already had all the fields. No request was sent.
    Unchanged,
    /// The object is gone. Only a write of a status has this result: nothing was written.
    Gone,
    /// The object was deleted, and another object has the name now. Only a write of a status has this result: nothing was written.
    Replaced,
}

impl OperationResult {
    /// Returns whether the write changed an object on the server.
    pub fn is_written(self) -> bool {
        matches!(self, Self::Created | Self::Updated)
    }
}

/// An object after a write, and the effect of the write. Dereferences to the object.
///
/// [`Context::apply`](super::Context::apply) and [`Context::create_or_update`](super::Context::create_or_update) return a `WriteResult`.
#[derive(Clone, Debug)]
pub struct WriteResult<O> {
    /// The object as the server stores the object. If no request was sent: the object of the cache.
    pub object: Arc<O>,
    /// The effect of the write.
    pub operation: OperationResult,
}

impl<O> Deref for WriteResult<O> {
    type Target = O;

    fn deref(&self) -> &O {
        &self.object
    }
}
