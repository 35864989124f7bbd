//! The objects of one kind, as the cluster has them, and the indexes over them.

mod copies;
mod first_list;
mod index;
mod memory;
mod packer;
mod postings;
mod query;
mod state;
mod writer;

#[cfg(all(test, loom))]
mod interleavings;

pub use self::{
    index::{IndexFn, UnknownIndex},
    memory::{MemoryUse, Tier},
    query::Query,
    writer::{Sighting, SourceId, StoreOptions, Transaction, Writer},
};

use std::{any::Any, fmt, sync::Arc};

use self::{
    copies::Copies,
    memory::Accounting,
    state::{Hasher, State},
};
use crate::{Decoder, ObjectKey, RawObject, Selector, memo::Memos};

/// Reads the objects of one kind. Cheap to clone.
///
/// Every read sees one consistent state, and none ever waits for a writer. Objects come in the order in which they
/// took their places, which is the same in every run that sees the same events.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    /// What must live as long as anyone reads: the watch that feeds the store.
    guard: Option<Guard>,
}

/// Something that lives as long as the readers of a store.
type Guard = Arc<dyn Any + Send + Sync>;

#[derive(Debug)]
struct Shared {
    copies: Copies<State>,
    accounting: Accounting,
    memos: Memos,
}

impl Store {
    /// An empty store and its only writer.
    pub fn new(options: StoreOptions) -> (Self, Writer) {
        let hasher = Hasher::default();
        let shared = Arc::new(Shared {
            copies: Copies::new([(), ()].map(|()| State::new(hasher.clone()))),
            accounting: Accounting::default(),
            memos: Memos::new(options.memo_bytes),
        });
        (Self { shared: shared.clone(), guard: None }, Writer::new(shared, options))
    }

    /// The same store; its clones keep `guard` alive.
    pub fn with_guard(&self, guard: Arc<dyn Any + Send + Sync>) -> Self {
        Self { shared: self.shared.clone(), guard: Some(guard) }
    }

    /// An object by its key.
    pub fn get(&self, key: &ObjectKey) -> Option<RawObject> {
        self.get_by_name(key.namespace(), key.name())
    }

    /// An object by namespace and name.
    pub fn get_by_name(&self, namespace: Option<&str>, name: &str) -> Option<RawObject> {
        let namespace = namespace.unwrap_or_default().as_bytes();
        self.shared.copies.read(|state| state.get(namespace, name.as_bytes()).cloned())
    }

    /// All objects.
    pub fn list(&self) -> Vec<RawObject> {
        self.shared.copies.read(|state| state.iter().cloned().collect())
    }

    /// The objects of a namespace.
    pub fn namespace(&self, namespace: &str) -> Vec<RawObject> {
        self.select(&Query::new().namespace(namespace))
    }

    /// The objects that a selector chooses.
    pub fn list_selected(&self, selector: &Selector) -> Vec<RawObject> {
        self.select(&Query::new().selector(selector))
    }

    /// The objects with an owner reference to this uid, whether or not it is the controller.
    pub fn owned_by(&self, uid: &str) -> Vec<RawObject> {
        self.select(&Query::new().owner(uid))
    }

    /// The objects whose controller has this uid.
    pub fn controlled_by(&self, uid: &str) -> Vec<RawObject> {
        let mut objects = self.owned_by(uid);
        objects.retain(|object| object.controller_owner().is_some_and(|owner| owner.uid == uid));
        objects
    }

    /// The objects that a named index has under a value.
    ///
    /// # Errors
    /// There is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<RawObject>, UnknownIndex> {
        self.query(&Query::new().index(index, value))
    }

    /// The objects that fit all parts of a query.
    ///
    /// # Errors
    /// The query names an index that the store does not have.
    pub fn query(&self, query: &Query<'_>) -> Result<Vec<RawObject>, UnknownIndex> {
        self.shared.copies.read(|state| query.run(state))
    }

    fn select(&self, query: &Query<'_>) -> Vec<RawObject> {
        // Without a named index there is nothing to be unknown.
        self.query(query).unwrap_or_default()
    }

    /// The values that a named index has, in order.
    ///
    /// # Errors
    /// There is no such index.
    pub fn index_values(&self, index: &str) -> Result<Vec<String>, UnknownIndex> {
        self.shared.copies.read(|state| state.index_values(index))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.shared.copies.read(State::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how much memory the store takes.
    pub fn memory(&self) -> MemoryUse {
        let index = self.shared.copies.read(State::index_memory);
        self.shared.accounting.read(2 * index, self.shared.memos.bytes())
    }

    /// Returns a decoder that remembers what it decoded, within
    /// [`StoreOptions::memo_bytes`](crate::StoreOptions::memo_bytes). Decoders of one type share their memory.
    pub fn decoder<K: Send + Sync + 'static>(&self) -> Decoder<K> {
        Decoder::new(self.shared.memos.of::<K>())
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
