//! The storage of objects, and the memory of a store.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use crate::Dictionary;

/// How the objects of a kind are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectEncoding {
    /// As JSON that a read decodes. The text that objects of the kind have in common is stored once. The default.
    #[default]
    Raw,
    /// Like [`Self::Raw`], but objects without shared text are compressed with a dictionary that is trained
    /// on the kind. Compressed objects take about a fifth of the memory; each read takes some microseconds
    /// more.
    Compressed,
    /// Like [`Self::Raw`], but no text is shared: each object takes the memory of the whole JSON, which for
    /// pods is about four times the memory of [`Self::Raw`].
    Unshared,
}

/// The memory of a store, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The objects, without the shared text.
    pub objects: usize,
    /// Tables and indexes.
    pub index: usize,
    /// The text that objects of the kind share.
    pub shared: usize,
    /// The compression dictionaries and the compression contexts.
    pub dictionaries: usize,
    /// The remembered decoded objects. An estimate.
    pub decoded: usize,
}

impl MemoryUse {
    /// Returns the sum of all parts.
    pub fn total(self) -> usize {
        let Self { objects, index, shared, dictionaries, decoded } = self;
        objects + index + shared + dictionaries + decoded
    }
}

/// The sizes that the writer reports to readers.
#[derive(Debug, Default)]
pub(super) struct Accounting {
    objects: AtomicUsize,
    shared: AtomicUsize,
    /// The dictionaries that an object may still use.
    dictionaries: Mutex<Vec<Weak<Dictionary>>>,
}

impl Accounting {
    pub(super) fn set_objects(&self, bytes: usize) {
        self.objects.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_shared(&self, bytes: usize) {
        self.shared.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_dictionary(&self, dictionary: &Arc<Dictionary>) {
        let mut dictionaries = self.dictionaries.lock();
        dictionaries.retain(|dictionary| dictionary.strong_count() > 0);
        dictionaries.push(Arc::downgrade(dictionary));
    }

    /// Returns the memory use. The caller knows the sizes of the indexes and the decoded objects.
    pub(super) fn read(&self, index: usize, decoded: usize) -> MemoryUse {
        let dictionaries = self.dictionaries.lock();
        let dictionaries = dictionaries.iter().filter_map(Weak::upgrade);
        MemoryUse {
            objects: self.objects.load(Ordering::Relaxed),
            index,
            shared: self.shared.load(Ordering::Relaxed),
            dictionaries: dictionaries.map(|dictionary| dictionary.memory()).sum(),
            decoded,
        }
    }
}
