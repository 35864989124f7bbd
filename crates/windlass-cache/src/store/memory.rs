//! How objects are kept, and what that costs.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use crate::Dictionary;

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

/// The memory that one store takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The objects, without what they share.
    pub objects: usize,
    /// Tables and indexes.
    pub index: usize,
    /// The shapes: text and usual values that objects of the kind share.
    pub shapes: usize,
    /// The dictionaries that objects are compressed with, and what compressing takes.
    pub dictionaries: usize,
    /// Decoded objects that are remembered. An estimate.
    pub decoded: usize,
}

impl MemoryUse {
    /// The sum of all parts.
    pub fn total(self) -> usize {
        let Self { objects, index, shapes, dictionaries, decoded } = self;
        objects + index + shapes + dictionaries + decoded
    }
}

/// The counts that the writer keeps for readers.
#[derive(Debug, Default)]
pub(super) struct Accounting {
    objects: AtomicUsize,
    shapes: AtomicUsize,
    /// All dictionaries that objects may still use.
    dictionaries: Mutex<Vec<Weak<Dictionary>>>,
}

impl Accounting {
    pub(super) fn set_objects(&self, bytes: usize) {
        self.objects.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_shapes(&self, bytes: usize) {
        self.shapes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_dictionary(&self, dictionary: &Arc<Dictionary>) {
        let mut dictionaries = self.dictionaries.lock();
        dictionaries.retain(|dictionary| dictionary.strong_count() > 0);
        dictionaries.push(Arc::downgrade(dictionary));
    }

    /// Returns the counts; the caller knows the rest.
    pub(super) fn read(&self, index: usize, decoded: usize) -> MemoryUse {
        let dictionaries = self.dictionaries.lock();
        let dictionaries = dictionaries.iter().filter_map(Weak::upgrade);
        MemoryUse {
            objects: self.objects.load(Ordering::Relaxed),
            index,
            shapes: self.shapes.load(Ordering::Relaxed),
            dictionaries: dictionaries.map(|dictionary| dictionary.memory()).sum(),
            decoded,
        }
    }
}
