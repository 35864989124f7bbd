//! The caches that one controller declared.

use std::sync::Arc;

use hashbrown::HashMap;
use kube_core::{ApiResource, Resource};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use windlass_cache::{ObjectKey, Query, RawObject};

use super::lister::Lister;
use crate::{
    client::path::GroupResource,
    error::{Error, Result},
    informer::SharedInformer,
    read_your_writes::{CacheView, UnseenWrites, WriteRef},
};

/// The caches of a controller, by kind. Reading another kind is an error: a Lister never starts a watch silently.
pub(crate) struct Caches {
    pub(crate) controller: String,
    kinds: RwLock<HashMap<GroupResource, Arc<KindCache>, foldhash::fast::FixedState>>,
}

/// One kind's cache, with the unseen writes to be laid over it.
pub(crate) struct KindCache {
    pub(crate) kind: String,
    pub(crate) informer: SharedInformer,
    pub(crate) writes: Arc<UnseenWrites>,
    /// Whether the cache has objects whole, or their metadata alone.
    pub(crate) metadata_only: bool,
}

impl Caches {
    pub(crate) fn new(controller: &str) -> Self {
        Self { controller: controller.to_owned(), kinds: RwLock::default() }
    }

    /// Adds a kind. Where a controller watches one whole and as metadata, reads use the whole one.
    pub(crate) fn add(&self, resource: &ApiResource, cache: Arc<KindCache>) {
        let mut kinds = self.kinds.write();
        let place = kinds.entry(GroupResource::of(resource)).or_insert_with(|| cache.clone());
        if place.metadata_only && !cache.metadata_only {
            *place = cache;
        }
    }

    pub(crate) fn remove(&self, resource: &ApiResource) {
        self.kinds.write().remove(&GroupResource::of(resource));
    }

    pub(crate) fn find(&self, resource: &GroupResource) -> Option<Arc<KindCache>> {
        self.kinds.read().get(resource).cloned()
    }

    pub(crate) fn of(&self, resource: &ApiResource) -> Result<Arc<KindCache>> {
        self.find(&GroupResource::of(resource))
            .ok_or_else(|| Error::not_declared(&self.controller, &resource.kind))
    }

    pub(crate) fn lister<C>(&self) -> Result<Lister<C>>
    where
        C: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        Ok(Lister::new(self.of(&ApiResource::erase::<C>(&()))?))
    }
}

impl KindCache {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<RawObject> {
        self.writes.get(key, |object| self.holds(object), || self.informer.store().get(key))
    }

    /// The objects that a query wants.
    pub(crate) fn list(&self, query: &Query<'_>) -> Vec<RawObject> {
        self.writes.list(
            |object| self.holds(object) && query.matches(object),
            // Without a named index there is none that could be unknown.
            || self.informer.store().query(query).unwrap_or_default(),
        )
    }

    /// Whether the cache's own filter lets an object in.
    fn holds(&self, object: &RawObject) -> bool {
        self.informer.options().admits(object)
    }

    /// Completes when the watch has told of a write, or will tell of nothing more.
    pub(crate) async fn has_seen(&self, write: &WriteRef) {
        let mut progress = self.informer.progress();
        while !self.writes.has_seen(write) && progress.changed().await.is_ok() {}
    }
}

impl CacheView for SharedInformer {
    fn object(&self, key: &ObjectKey) -> Option<(String, u64)> {
        let object = self.store().get(key)?;
        Some((object.uid().to_owned(), object.revision()))
    }

    fn high_water_mark(&self) -> u64 {
        Self::high_water_mark(self)
    }
}
