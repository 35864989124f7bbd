//! Typed reads from memory.

use std::{marker::PhantomData, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use windlass_cache::{ObjectKey, RawObject, Selector};

use super::caches::KindCache;
use crate::error::{Error, Result};

/// Reads a kind from its cache, with the process's own writes laid over it. Never waits, never asks the server.
///
/// Every read is a `Result`: an object that does not decode must not look like one that is gone, or it would be created again.
pub struct Lister<K> {
    cache: Arc<KindCache>,
    namespace: Option<Arc<str>>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), namespace: self.namespace.clone(), kind: PhantomData }
    }
}

impl<K> Lister<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    pub(crate) fn new(cache: Arc<KindCache>) -> Self {
        Self { cache, namespace: None, kind: PhantomData }
    }

    /// The same within one namespace.
    pub fn namespace(&self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.into()), ..self.clone() }
    }

    /// The object under a key, or `None` if there is none.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>> {
        if self.namespace.as_deref().is_some_and(|namespace| key.namespace() != Some(namespace)) {
            return Ok(None);
        }
        self.cache.get(key).map(|object| decode(&self.cache.kind, &object)).transpose()
    }

    /// All objects, in order of their keys.
    pub fn all(&self) -> Result<Objects<K>> {
        self.read(|_| true, |this| this.in_namespace())
    }

    /// The objects with matching labels, in order of their keys.
    pub fn list(&self, selector: &Selector) -> Result<Objects<K>> {
        self.read(
            |object| selector.matches(object.labels()),
            |this| {
                let mut objects = this.in_namespace();
                objects.retain(|object| selector.matches(object.labels()));
                objects
            },
        )
    }

    /// The objects that the object with this uid owns, as controller or otherwise.
    pub fn owned_by(&self, uid: &str) -> Result<Objects<K>> {
        self.read(
            |object| object.owner_references().any(|owner| owner.uid() == uid),
            |this| this.cache.informer.store().owned_by(uid),
        )
    }

    fn in_namespace(&self) -> Vec<RawObject> {
        match &self.namespace {
            Some(namespace) => self.cache.informer.store().in_namespace(namespace),
            None => self.cache.informer.store().all(),
        }
    }

    fn read(
        &self,
        matches: impl Fn(&RawObject) -> bool,
        read: impl FnOnce(&Self) -> Vec<RawObject>,
    ) -> Result<Objects<K>> {
        let inside = |object: &RawObject| match self.namespace.as_deref() {
            Some(namespace) => object.namespace() == Some(namespace),
            None => true,
        };
        let objects = self.cache.list(|object| inside(object) && matches(object), || read(self));
        let decoded = objects.iter().filter(|object| inside(object)).map(|object| decode(&self.cache.kind, object));
        Ok(Objects(decoded.collect::<Result<_>>()?))
    }
}

fn decode<K: DeserializeOwned + Send + Sync + 'static>(kind: &str, object: &RawObject) -> Result<Arc<K>> {
    object.decode::<K>().map_err(|cause| Error::decode(format!("{kind} {}", object.key()), cause))
}

/// Objects that were read, in order of their keys.
#[derive(Debug)]
pub struct Objects<K>(Vec<Arc<K>>);

impl<K> Objects<K> {
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<K>> {
        self.0.iter()
    }

    /// Only those that `keep` says.
    pub fn filter(mut self, keep: impl Fn(&K) -> bool) -> Self {
        self.0.retain(|object| keep(object));
        self
    }
}

impl<K: Resource> Objects<K> {
    /// Those that are not being deleted.
    pub fn alive(self) -> Self {
        self.filter(|object| object.meta().deletion_timestamp.is_none())
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.iter().map(|object| object.name_any()).collect();
        names.sort();
        names
    }

    /// The newest first; of those from one second, the last name first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Arc<K>> + use<'_, K> {
        let mut objects: Vec<_> = self.0.iter().collect();
        objects.sort_by(|a, b| age_and_name(b.as_ref()).cmp(&age_and_name(a.as_ref())));
        objects.into_iter()
    }

    /// The oldest first; of those from one second, the first name first.
    pub fn oldest_first(&self) -> impl Iterator<Item = &Arc<K>> + use<'_, K> {
        let mut objects: Vec<_> = self.0.iter().collect();
        objects.sort_by(|a, b| age_and_name(a.as_ref()).cmp(&age_and_name(b.as_ref())));
        objects.into_iter()
    }
}

fn age_and_name<K: Resource>(object: &K) -> (Option<&Time>, Option<&str>) {
    let meta = object.meta();
    (meta.creation_timestamp.as_ref(), meta.name.as_deref())
}

impl<K> IntoIterator for Objects<K> {
    type Item = Arc<K>;
    type IntoIter = std::vec::IntoIter<Arc<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, K> IntoIterator for &'a Objects<K> {
    type Item = &'a Arc<K>;
    type IntoIter = std::slice::Iter<'a, Arc<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
