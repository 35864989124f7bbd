//! The writer of a store.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    IndexFn, ObjectEncoding, StoreInner, StoreTransaction,
    copies::OperationLog,
    first_list::FirstLists,
    packer::Packer,
    postings::Slot,
    state::{Operation, State},
};
use crate::{ObjectKey, RawObject, object::NewObject, scan::Field, scanner::Scanned};

/// The options of a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// How objects are stored. Default: [`ObjectEncoding::Raw`].
    pub encoding: ObjectEncoding,
    /// Named indexes.
    pub indexes: BTreeMap<String, IndexFn>,
    /// About how many bytes the remembered decoded objects may take, for each type that is read. Default: 32 MiB.
    pub memo_bytes: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { encoding: ObjectEncoding::default(), indexes: BTreeMap::new(), memo_bytes: 32 << 20 }
    }
}

/// The number of a watch that feeds a store. A cache of several namespaces has a watch for each namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReflectorId(pub u16);

/// The key, uid and resource version of an object, and the watch or list that has shown it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRef<'a> {
    pub(super) source: ReflectorId,
    /// Empty for a cluster-scoped object.
    pub(super) namespace: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) uid: &'a [u8],
    pub(super) resource_version: &'a [u8],
}

impl<'a> ObjectRef<'a> {
    /// Returns a reference to an object that `source` has shown.
    pub fn of(source: ReflectorId, object: &'a RawObject) -> Self {
        Self {
            source,
            namespace: object.namespace_bytes(),
            name: object.name_bytes(),
            uid: object.uid_bytes(),
            resource_version: object.resource_version_bytes(),
        }
    }

    /// Returns a reference to an object that has not been copied yet, or `None` without a name.
    pub(crate) fn of_scanned(source: ReflectorId, object: &Scanned<'a>) -> Option<Self> {
        Some(Self {
            source,
            namespace: object.namespace_bytes(),
            name: object.name_bytes()?,
            uid: object.uid_bytes(),
            resource_version: object.resource_version_bytes(),
        })
    }

    /// Returns a reference to an object that is not stored yet.
    pub(crate) fn of_new(source: ReflectorId, object: &'a NewObject) -> Self {
        Self {
            source,
            namespace: object.field(Field::Namespace),
            name: object.field(Field::Name),
            uid: object.field(Field::Uid),
            resource_version: object.field(Field::ResourceVersion),
        }
    }
}

/// Changes a store. Each store has one writer.
#[derive(Debug)]
pub struct StoreWriter {
    inner: Arc<StoreInner>,
    log: OperationLog<Operation>,
    state: WriterState,
    /// A write is in progress, or has panicked.
    torn: bool,
}

/// The state that only the writer needs.
#[derive(Debug)]
pub(super) struct WriterState {
    /// The functions of the named indexes, in the order of the indexes.
    pub(super) functions: Vec<IndexFn>,
    /// The list that has shown each slot last.
    pub(super) marks: Vec<Mark>,
    /// Slots without an object.
    pub(super) free: Vec<Slot>,
    /// The number of the current list of each source.
    pub(super) epochs: BTreeMap<ReflectorId, u16>,
    pub(super) packer: Option<Packer>,
    /// Bytes of the objects.
    pub(super) bytes: usize,
    pub(super) first_lists: FirstLists,
    /// True if operations are not logged, because the other copy will be cloned from this copy.
    pub(super) unlogged: bool,
    /// Index functions that have panicked, with the first object: at most an entry for each index.
    pub(super) index_panics: Vec<(String, ObjectKey)>,
}

/// A list of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) source: ReflectorId,
    epoch: u16,
}

impl StoreWriter {
    pub(super) fn new(inner: Arc<StoreInner>, options: StoreOptions) -> Self {
        let packer = (options.encoding == ObjectEncoding::Compressed).then(Packer::default);
        let state = WriterState {
            functions: Vec::new(),
            marks: Vec::new(),
            free: Vec::new(),
            epochs: BTreeMap::new(),
            packer,
            bytes: 0,
            first_lists: FirstLists::default(),
            unlogged: false,
            index_panics: Vec::new(),
        };
        let mut writer = Self { inner, log: OperationLog::new(), state, torn: false };
        for (name, function) in options.indexes {
            writer.add_index(&name, function);
        }
        writer
    }

    /// Returns the indexes with a panic since the last call, each with the object of the first panic.
    pub fn take_index_panics(&mut self) -> Vec<(String, ObjectKey)> {
        std::mem::take(&mut self.state.index_panics)
    }

    /// Sets the bytes of the text that the objects share, for [`Store::memory`](crate::Store::memory). The scanners own the
    /// text.
    pub fn set_shared_memory(&mut self, bytes: usize) {
        self.inner.accounting.set_shared(bytes);
    }

    /// Adds a named index over all objects. Returns `false`, and changes nothing, if an index has that name already.
    pub fn add_index(&mut self, name: &str, function: IndexFn) -> bool {
        self.write(|transaction| transaction.add_index(name, function))
    }

    /// Changes the store. Readers see all changes at once after the return of `change`. The first list of a
    /// source becomes visible at the end of the list, with [`StoreTransaction::sweep`].
    ///
    /// If `change` panics, readers see no change, and the next write starts from the published state. The
    /// source must then begin a new list.
    pub fn write<R>(&mut self, change: impl FnOnce(&mut StoreTransaction<'_>) -> R) -> R {
        let torn = std::mem::replace(&mut self.torn, true);
        if torn {
            self.log.discard();
        }
        let (writer, accounting) = (&mut self.state, &self.inner.accounting);
        let result = self.inner.copies.write(&mut self.log, |state, log| {
            if torn {
                writer.rebuild(state);
            }
            let mut transaction = StoreTransaction::new(state, log, writer, accounting);
            transaction.add_wanted(&self.inner.wanted);
            change(&mut transaction)
        });
        self.torn = false;
        self.state.first_lists.commit();
        self.inner.accounting.set_objects(self.state.bytes + self.state.first_lists.bytes());
        result
    }
}

impl WriterState {
    /// Derives everything from the state that readers see, after a write that panicked.
    fn rebuild(&mut self, state: &State) {
        let slots = 0..state.slots() as Slot;
        self.free = slots.filter(|&slot| state.at(slot).is_none()).collect();
        self.marks.resize(state.slots(), Mark::default());
        self.functions.truncate(state.indexes());
        self.bytes = state.iter().map(RawObject::memory).sum();
        self.first_lists.roll_back();
        self.unlogged = false;
    }

    pub(super) fn mark(&self, source: ReflectorId) -> Mark {
        Mark { source, epoch: self.epochs.get(&source).copied().unwrap_or_default() }
    }

    pub(super) fn take_slot(&mut self, slots: usize) -> Slot {
        let slot = self.free.pop().unwrap_or(slots as Slot);
        if slot as usize >= self.marks.len() {
            self.marks.resize(slot as usize + 1, Mark::default());
        }
        slot
    }

    pub(super) fn pack(&mut self, object: RawObject) -> RawObject {
        match &mut self.packer {
            Some(packer) => packer.pack(object),
            None => object,
        }
    }
}
