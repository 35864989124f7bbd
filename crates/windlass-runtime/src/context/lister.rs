//! Typed reads from memory.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use windlass_cache::{ObjectKey, Query, RawObject, Selector};

use super::caches::KindCache;
use crate::error::{Error, Result};

/// Reads a kind from its cache, with the process's own writes laid over it. Never waits, never asks the server.
///
/// Every read is a `Result`: an object that does not decode must not look like one that is gone, or it would be created again.
pub struct Lister<K> {
    cache: Arc<KindCache>,
    namespace: Option<Arc<str>>,
    /// Decodes, and remembers what was decoded.
    typed: windlass_cache::Lister<K>,
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), namespace: self.namespace.clone(), typed: self.typed.clone() }
    }
}

impl<K> Lister<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    pub(crate) fn new(cache: Arc<KindCache>) -> Self {
        let typed = cache.informer.store().lister();
        Self { cache, namespace: None, typed }
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
        self.cache.get(key).map(|object| self.decode(&object)).transpose()
    }

    /// All objects.
    pub fn all(&self) -> Result<Objects<K>> {
        self.query(Query::new())
    }

    /// The objects with matching labels.
    pub fn list(&self, selector: &Selector) -> Result<Objects<K>> {
        self.query(Query::new().selector(selector))
    }

    /// The objects that the object with this uid owns, as controller or with others.
    pub fn owned_by(&self, uid: &str) -> Result<Objects<K>> {
        self.query(Query::new().owner(uid))
    }

    fn query(&self, query: Query<'_>) -> Result<Objects<K>> {
        let query = match self.namespace.as_deref() {
            Some(namespace) => query.namespace(namespace),
            None => query,
        };
        let mut objects = self.cache.list(&query);
        objects.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        objects.iter().map(|object| self.decode(object)).collect::<Result<_>>().map(Objects)
    }

    fn decode(&self, object: &RawObject) -> Result<Arc<K>> {
        self.typed
            .decode(object)
            .map_err(|cause| Error::decode(format!("{} {}", self.cache.kind, object.key()), cause))
    }
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
    pub fn iter(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(AsRef::as_ref)
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
        let mut names: Vec<String> = self.iter().map(ResourceExt::name_any).collect();
        names.sort();
        names
    }

    /// The newest first; of those from one second, the last name first.
    pub fn newest_first(&self) -> impl Iterator<Item = &K> {
        let mut objects: Vec<&K> = self.iter().collect();
        objects.sort_by(|a, b| age_and_name(*b).cmp(&age_and_name(*a)));
        objects.into_iter()
    }

    /// The oldest first; of those from one second, the first name first.
    pub fn oldest_first(&self) -> impl Iterator<Item = &K> {
        let mut objects: Vec<&K> = self.iter().collect();
        objects.sort_by(|a, b| age_and_name(*a).cmp(&age_and_name(*b)));
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
