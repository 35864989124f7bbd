//! How objects are kept, and what that costs.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How the objects of a kind are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// As JSON, which a read decodes; the decoded form of those read last is remembered. What objects of a kind have in
    /// common (their shape: members and usual values) is kept once. The default.
    #[default]
    Raw,
    /// The same; objects that share no shape with others are compressed with a dictionary that is trained on the kind: a
    /// fifth of their memory, some microseconds more for each read.
    Compressed,
}

/// Memory of one store, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The objects.
    pub objects: usize,
    /// Tables and indexes.
    pub index: usize,
}

impl MemoryUse {
    /// Both together.
    pub fn total(self) -> usize {
        self.objects + self.index
    }
}

/// What the writer counts.
#[derive(Debug, Default)]
pub(super) struct Accounting {
    objects: AtomicUsize,
}

impl Accounting {
    pub(super) fn set(&self, objects: usize) {
        self.objects.store(objects, Ordering::Relaxed);
    }

    pub(super) fn read(&self, index: usize) -> MemoryUse {
        MemoryUse { objects: self.objects.load(Ordering::Relaxed), index }
    }
}
