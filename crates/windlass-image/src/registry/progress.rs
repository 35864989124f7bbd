//! The progress of a pull or of a push.

use crate::Descriptor;

/// A step of a blob's transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The blob is there already.
    Present,
    /// The registry took the blob from another of its repositories.
    Mounted,
    /// The number of bytes that have been transferred so far. A transfer that is repeated begins at 0.
    Moved(u64),
    /// The blob has been transferred.
    Done,
}

/// Receives the progress of a pull or of a push.
pub trait Progress: Send + Sync {
    /// Reports a step of a blob's transfer.
    fn report(&self, blob: &Descriptor, step: Step);
}

/// Ignores the progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn report(&self, _blob: &Descriptor, _step: Step) {}
}
