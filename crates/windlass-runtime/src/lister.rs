//! Typed reads from memory.

use std::sync::Arc;

use kube_core::Resource;
use serde::de::DeserializeOwned;
use windlass_cache::{DecodeError, Decoder, ObjectKey, Query, RawObject, Selector};

use crate::{
    client::path::GroupResource,
    error::{Error, Result},
    informer::SharedInformer,
    kind::AsObject,
    kind_cache::KindCache,
    objects::Objects,
};

impl<K: DeserializeOwned + Send + Sync + 'static> SharedInformer<K> {
    /// Returns a typed view of the cache. The view shows the changes that the watch has seen, without the unseen
    /// writes that a [`Context`](crate::Context) adds.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(Arc::new(KindCache::of_informer(self.read_as())))
    }
}

/// Reads a kind from the cache. Never waits, never asks the server. Cheap to clone.
///
/// A lister of a [`Context`](crate::Context) sees the process's own writes at once; a lister of a
/// [`SharedInformer`](crate::informer::SharedInformer) sees the changes that the watch has seen.
///
/// An object that does not decode is never treated as absent, because a reconciler would create the object again:
/// [`get`](Self::get), [`owned_by`](Self::owned_by) and [`controlled_by`](Self::controlled_by) return an error. The other
/// lists return the objects that decode, together with the errors of the remaining objects ([`Objects::errors`]): a broken object does not
/// stop the reconciles of the rest.
pub struct Lister<K> {
    kind: Arc<CachedKind<K>>,
    namespace: Option<Arc<str>>,
}

/// The cache of a kind, and the decoded objects. The clones of a lister share the value.
struct CachedKind<K> {
    cache: Arc<KindCache>,
    decoder: Decoder<K>,
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { kind: self.kind.clone(), namespace: self.namespace.clone() }
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Lister<K> {
    pub(crate) fn new(cache: Arc<KindCache>) -> Self {
        let decoder = cache.informer.store().decoder();
        Self { kind: Arc::new(CachedKind { cache, decoder }), namespace: None }
    }

    fn cache(&self) -> &KindCache {
        &self.kind.cache
    }

    /// Waits until the first list of the cache has ended.
    pub(crate) async fn synced(&self) {
        self.cache().informer.synced().await;
    }

    /// Returns whether the cache leaves out fields of the objects.
    pub(crate) fn leaves_out_fields(&self) -> bool {
        self.cache().informer.options().transform.is_some()
    }

    /// Returns a lister of a single namespace.
    pub fn namespace(&self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.into()), ..self.clone() }
    }

    /// Returns the object under a key, or `None` if there is none.
    ///
    /// # Errors
    /// The object does not decode.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>> {
        if self.namespace.as_deref().is_some_and(|namespace| key.namespace() != Some(namespace)) {
            return Ok(None);
        }
        if !self.cache().has_unseen_writes()
            && let Some(decoded) = self.kind.decoder.remembered(key)
        {
            return Ok(Some(decoded));
        }
        self.cache().get(key).map(|object| self.decode(&object)).transpose()
    }

    /// Returns all objects that decode, and the errors of the remaining objects.
    pub fn all(&self) -> Result<Objects<K>> {
        if self.namespace.is_some() || self.cache().has_unseen_writes() {
            return self.query(Query::new());
        }
        let mut errors = Vec::new();
        let objects = self.kind.decoder.all(|object, error| errors.push(self.undecodable(object, error)));
        Ok(Objects::new(objects, errors))
    }

    /// Returns the keys of all objects, without decoding any object.
    ///
    /// # Errors
    /// None today; all reads return a `Result`.
    pub fn keys(&self) -> Result<Vec<ObjectKey>> {
        Ok(self
            .raw(Query::new())?
            .iter()
            .map(|object| ObjectKey::new(object.namespace(), object.name()))
            .collect())
    }

    /// Returns the objects with matching labels that decode, and the errors of the remaining objects.
    pub fn list(&self, selector: &Selector) -> Result<Objects<K>> {
        self.query(Query::new().selector(selector))
    }

    /// Returns the objects that a named index has under a value and that decode, and the errors of the remaining objects.
    ///
    /// # Errors
    /// The watch declares no index of this name; see [`CacheOptions::index`](crate::informer::CacheOptions::index).
    pub fn by_index(&self, index: &str, value: &str) -> Result<Objects<K>> {
        self.query(Query::new().index(index, value))
    }

    /// Returns the objects that have an owner reference to `owner`. The owner may be of any kind.
    ///
    /// # Errors
    /// An object does not decode, or `owner` has no uid because `owner` was not read from the server.
    pub fn owned_by<O, Form>(&self, owner: &O) -> Result<Objects<K>>
    where
        O: AsObject<Form>,
    {
        self.query(Query::new().owner(uid_of(owner)?))?.complete()
    }

    /// Returns the objects whose controller is `owner`. The owner may be of any kind.
    ///
    /// # Errors
    /// As [`owned_by`](Self::owned_by).
    pub fn controlled_by<O, Form>(&self, owner: &O) -> Result<Objects<K>>
    where
        O: AsObject<Form>,
    {
        let uid = uid_of(owner)?;
        let mut objects = self.raw(Query::new().owner(uid))?;
        objects.retain(|object| object.controller_owner().is_some_and(|owner| owner.uid == uid));
        self.decode_all(&objects).complete()
    }

    /// Returns the objects that match all parts of a query and that decode, and the errors of the remaining objects.
    ///
    /// # Errors
    /// The query names an index that the watch does not declare.
    pub fn query(&self, query: Query<'_>) -> Result<Objects<K>> {
        Ok(self.decode_all(&self.raw(query)?))
    }

    fn raw(&self, query: Query<'_>) -> Result<Vec<RawObject>> {
        let query = match self.namespace.as_deref() {
            Some(namespace) => query.namespace(namespace),
            None => query,
        };
        self.cache()
            .list(&query)
            .map_err(|error| Error::setup(format!("reading {}: {error}", self.cache().kind())))
    }

    fn decode_all(&self, objects: &[RawObject]) -> Objects<K> {
        let mut decoded = Objects::with_capacity(objects.len());
        objects.iter().for_each(|object| decoded.push(self.decode(object)));
        decoded
    }

    fn decode(&self, object: &RawObject) -> Result<Arc<K>> {
        self.kind.decoder.decode(object).map_err(|error| self.undecodable(object, error))
    }

    /// Reports an object that does not decode.
    fn undecodable(&self, object: &RawObject, error: DecodeError) -> Error {
        self.cache().report_undecodable(object, &error);
        Error::undecodable(GroupResource::of(self.cache().informer.resource()), error)
    }
}

/// Returns the uid of an owner, which dependents refer to.
fn uid_of<Form>(owner: &impl AsObject<Form>) -> Result<&str> {
    let meta = owner.as_object().meta();
    meta.uid.as_deref().ok_or_else(|| {
        let name = meta.name.as_deref().unwrap_or_default();
        Error::setup(format!("{name}: has no uid, so it cannot own anything; use the object that was read"))
    })
}

impl<K> std::fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lister").field("kind", &self.kind.cache.kind()).finish_non_exhaustive()
    }
}
