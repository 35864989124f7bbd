//! The store: the objects of a kind, and the indexes over these objects.

mod copies;
mod first_list;
mod index;
mod memo;
mod memory;
mod packer;
mod postings;
mod query;
mod state;
mod transaction;
mod writer;

#[cfg(all(test, loom))]
mod interleavings;

pub use self::{
    index::{IndexFn, IndexValues, UnknownIndex},
    memo::Decoder,
    memory::{MemoryUse, ObjectEncoding},
    query::Query,
    transaction::StoreTransaction,
    writer::{ObjectRef, ReflectorId, StoreOptions, StoreWriter},
};

use std::{any::Any, fmt, sync::Arc};

pub(crate) use self::postings::Slot;
use self::{
    copies::Copies,
    memo::Memos,
    memory::Accounting,
    query::WantedIndexes,
    state::{Hasher, State},
};
use crate::{ObjectKey, RawObject};

/// Reads the objects of a kind. Cheap to clone.
///
/// Each read sees a consistent state and never waits for the writer. The order of the objects is stable: two
/// runs with the same events return the same order.
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
    /// Keeps the watch that feeds the store alive.
    guard: Option<Guard>,
}

/// A value that lives as long as the readers of a store.
type Guard = Arc<dyn Any + Send + Sync>;

#[derive(Debug)]
pub(crate) struct StoreInner {
    copies: Copies<State>,
    accounting: Accounting,
    memos: Memos,
    wanted: WantedIndexes,
}

impl StoreInner {
    /// Returns the slot of an object, if the store holds the object.
    pub(crate) fn slot_of(&self, object: &RawObject) -> Option<Slot> {
        self.copies.read(|state| {
            let slot = state.find_object(object.namespace_bytes(), object.name_bytes())?;
            state.at(slot).filter(|held| held.is_same(object)).map(|_| slot)
        })
    }

    /// Passes the object under a key, with its slot, to `read`.
    pub(crate) fn with_object<R>(
        &self,
        key: &ObjectKey,
        read: impl FnOnce(Slot, &RawObject) -> R,
    ) -> Option<R> {
        self.copies.read(|state| {
            let slot =
                state.find_object(key.namespace().unwrap_or_default().as_bytes(), key.name().as_bytes())?;
            state.at(slot).map(|object| read(slot, object))
        })
    }

    /// Passes all objects, with slots, to `read`.
    pub(crate) fn each_slot(&self, read: impl FnOnce(&mut dyn Iterator<Item = (Slot, &RawObject)>)) {
        self.copies.read(|state| read(&mut state.occupied()));
    }
}

impl Store {
    /// Creates an empty store and the store's only writer.
    pub fn new(options: StoreOptions) -> (Self, StoreWriter) {
        let hasher = Hasher::default();
        let inner = Arc::new(StoreInner {
            copies: Copies::new([(), ()].map(|()| State::new(hasher.clone()))),
            accounting: Accounting::default(),
            memos: Memos::new(options.memo_bytes),
            wanted: WantedIndexes::default(),
        });
        (Self { inner: inner.clone(), guard: None }, StoreWriter::new(inner, options))
    }

    /// Returns the same store. The returned store and its clones keep `guard` alive.
    pub fn with_guard(&self, guard: Arc<dyn Any + Send + Sync>) -> Self {
        Self { inner: self.inner.clone(), guard: Some(guard) }
    }

    /// Returns the object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<RawObject> {
        self.get_by_name(key.namespace(), key.name())
    }

    /// Returns the object with this namespace and name.
    pub fn get_by_name(&self, namespace: Option<&str>, name: &str) -> Option<RawObject> {
        let namespace = namespace.unwrap_or_default().as_bytes();
        self.inner.copies.read(|state| state.get(namespace, name.as_bytes()).cloned())
    }

    /// Returns all objects.
    pub fn list(&self) -> Vec<RawObject> {
        self.inner.copies.read(|state| state.iter().cloned().collect())
    }

    /// Returns the objects of a namespace.
    pub fn namespace(&self, namespace: &str) -> Vec<RawObject> {
        self.select(&Query::new().namespace(namespace))
    }

    /// Returns the objects with an owner reference to this uid, whether or not the owner is the controller.
    pub fn owned_by(&self, uid: &str) -> Vec<RawObject> {
        self.select(&Query::new().owner(uid))
    }

    /// Returns the objects with this uid as the controller.
    pub fn controlled_by(&self, uid: &str) -> Vec<RawObject> {
        let mut objects = self.owned_by(uid);
        objects.retain(|object| object.controller_owner().is_some_and(|owner| owner.uid == uid));
        objects
    }

    /// Returns the objects that have a value in a named index.
    ///
    /// # Errors
    /// The store has no index of this name.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<RawObject>, UnknownIndex> {
        self.query(&Query::new().index(index, value))
    }

    /// Returns the objects that match a query.
    ///
    /// The first query by namespace, by owner or by a label looks at all objects. The next write of the store then adds an index over
    /// the namespaces, the owners, or the values of the label. At most 16 labels have an index. [`index_wanted`](Self::index_wanted) tells the writer to write.
    ///
    /// # Errors
    /// The query names an index that the store does not have.
    pub fn query(&self, query: &Query<'_>) -> Result<Vec<RawObject>, UnknownIndex> {
        let mut missing = Vec::new();
        let found = self.inner.copies.read(|state| query.run(state, &mut missing));
        if !missing.is_empty() {
            self.inner.wanted.add(missing);
        }
        found
    }

    /// Waits until a query has wanted an index that the store lacks. Any write of the store adds the index, also a write without a change.
    pub async fn index_wanted(&self) {
        self.inner.wanted.added().await;
    }

    fn select(&self, query: &Query<'_>) -> Vec<RawObject> {
        // A query without a named index cannot fail.
        self.query(query).unwrap_or_default()
    }

    /// Returns the values of a named index, sorted.
    ///
    /// # Errors
    /// The store has no index of this name.
    pub fn index_values(&self, index: &str) -> Result<Vec<String>, UnknownIndex> {
        self.inner.copies.read(|state| state.index_values(index))
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.inner.copies.read(State::len)
    }

    /// Returns whether the store has no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how much memory the store takes.
    pub fn memory(&self) -> MemoryUse {
        let index = self.inner.copies.read(State::index_memory);
        self.inner.accounting.read(2 * index, self.inner.memos.bytes())
    }

    /// Returns a decoder that remembers decoded objects, within
    /// [`StoreOptions::memo_bytes`](crate::StoreOptions::memo_bytes). Decoders of a type share this memory.
    pub fn decoder<K: Send + Sync + 'static>(&self) -> Decoder<K> {
        Decoder::new(self.inner.clone(), self.inner.memos.of::<K>())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("objects", &self.len())
            .field("guarded", &self.guard.is_some())
            .finish_non_exhaustive()
    }
}
