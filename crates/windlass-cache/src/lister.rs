//! Reads typed objects from memory.

use std::{fmt, sync::Arc};

use serde::de::DeserializeOwned;

use crate::{DecodeError, ObjectKey, Query, RawObject, Selector, Store, UnknownIndex, memo::Memo};

/// A typed view of a store. Cheap to clone.
///
/// Objects are decoded when they are read; those read last are remembered. An object that does not decode is an
/// error, never an absence: whoever took it for gone would create it again.
pub struct Lister<K> {
    store: Store,
    memo: Arc<Memo<K>>,
}

/// A read from the cache failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct ReadError(#[from] ReadErrorKind);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ReadErrorKind {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    UnknownIndex(#[from] UnknownIndex),
}

impl ReadError {
    /// Whether an object did not decode.
    pub fn is_decode(&self) -> bool {
        matches!(self.0, ReadErrorKind::Decode(_))
    }

    /// The object that did not decode.
    pub fn key(&self) -> Option<&ObjectKey> {
        match &self.0 {
            ReadErrorKind::Decode(error) => Some(error.key()),
            ReadErrorKind::UnknownIndex(_) => None,
        }
    }
}

impl From<DecodeError> for ReadError {
    fn from(error: DecodeError) -> Self {
        Self(error.into())
    }
}

impl From<UnknownIndex> for ReadError {
    fn from(error: UnknownIndex) -> Self {
        Self(error.into())
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Lister<K> {
    pub(crate) fn new(store: Store, memo: Arc<Memo<K>>) -> Self {
        Self { store, memo }
    }

    /// An object by its key; `None` when the cache does not have it.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, ReadError> {
        self.store.get(key).map(|object| self.decode(&object)).transpose()
    }

    /// All objects.
    pub fn list(&self) -> Result<Vec<Arc<K>>, ReadError> {
        self.decode_all(self.store.list())
    }

    /// The objects that a selector chooses.
    pub fn list_selected(&self, selector: &Selector) -> Result<Vec<Arc<K>>, ReadError> {
        self.decode_all(self.store.list_selected(selector))
    }

    /// A view of one namespace.
    pub fn namespace<'a>(&'a self, namespace: &'a str) -> NamespaceLister<'a, K> {
        NamespaceLister { lister: self, namespace }
    }

    /// The objects that a named index has under a value.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, ReadError> {
        self.decode_all(self.store.by_index(index, value)?)
    }

    /// The objects with an owner reference to this uid.
    pub fn owned_by(&self, uid: &str) -> Result<Vec<Arc<K>>, ReadError> {
        self.decode_all(self.store.owned_by(uid))
    }

    /// The objects whose controller has this uid.
    pub fn controlled_by(&self, uid: &str) -> Result<Vec<Arc<K>>, ReadError> {
        self.decode_all(self.store.controlled_by(uid))
    }

    /// The objects that fit all parts of a query.
    pub fn query(&self, query: &Query<'_>) -> Result<Vec<Arc<K>>, ReadError> {
        self.decode_all(self.store.query(query)?)
    }

    /// The objects as bytes.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Decodes an object, or remembers that it has been decoded.
    pub fn decode(&self, object: &RawObject) -> Result<Arc<K>, ReadError> {
        Ok(self.memo.decode(object)?)
    }

    fn decode_all(&self, objects: Vec<RawObject>) -> Result<Vec<Arc<K>>, ReadError> {
        objects.iter().map(|object| self.decode(object)).collect()
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), memo: self.memo.clone() }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("store", &self.store).finish_non_exhaustive()
    }
}

/// A typed view of one namespace.
#[derive(Debug)]
pub struct NamespaceLister<'a, K> {
    lister: &'a Lister<K>,
    namespace: &'a str,
}

impl<K: DeserializeOwned + Send + Sync + 'static> NamespaceLister<'_, K> {
    /// An object by its name.
    pub fn get(&self, name: &str) -> Result<Option<Arc<K>>, ReadError> {
        let object = self.lister.store.get_by_name(Some(self.namespace), name);
        object.map(|object| self.lister.decode(&object)).transpose()
    }

    /// The namespace's objects.
    pub fn list(&self) -> Result<Vec<Arc<K>>, ReadError> {
        self.lister.query(&Query::new().namespace(self.namespace))
    }

    /// Those of the namespace that a selector chooses.
    pub fn list_selected(&self, selector: &Selector) -> Result<Vec<Arc<K>>, ReadError> {
        self.lister.query(&Query::new().namespace(self.namespace).selector(selector))
    }
}
