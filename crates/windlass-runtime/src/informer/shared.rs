//! One watch of a kind, and those who share it.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use kube_core::ApiResource;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_cache::{
    IndexFn, InformerCore, InformerMetrics, Notice, ObjectKey, RawObject, SourceId, Store, SubscriptionGuard,
};

use super::{
    WatchOptions,
    delivery::{Delivery, DeltaHandler},
    driver::WatchSource,
    factory::Release,
    log::{Failing, WatchLog},
    undecodable::UndecodableObjects,
};
use crate::{
    read_your_writes::{Admission, CacheView},
    supervisor::Supervisor,
};

/// A callback for failures and other notices of a watch.
pub(super) type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

/// One watch of a kind with its cache. Cheap to clone.
///
/// The watch lives as long as a clone, a [`Store`] or [`Lister`](crate::Lister) of it, or a registered handler.
#[derive(Clone)]
pub struct SharedInformer {
    pub(super) watch: Arc<SharedWatch>,
}

/// What all users of a watch hold. The last to drop it ends the watch.
pub(super) struct SharedWatch {
    pub(super) core: InformerCore,
    pub(super) resource: ApiResource,
    pub(super) options: WatchOptions,
    /// The watches to start, one for each namespace.
    pub(super) sources: Mutex<Vec<WatchSource>>,
    /// The objects that do not decode, for each namespace.
    pub(super) undecodable: Vec<Arc<UndecodableObjects>>,
    pub(super) cancelled: CancellationToken,
    pub(super) listeners: Arc<RwLock<Vec<Listener>>>,
    pub(super) log: Arc<WatchLog>,
    pub(super) indexes: Mutex<BTreeMap<String, IndexFn>>,
    pub(super) supervisor: Supervisor,
    /// Removes the watch from its factory when the last user is gone.
    pub(super) release: OnceLock<Release>,
}

impl Drop for SharedWatch {
    fn drop(&mut self) {
        if let Some(release) = self.release.get() {
            release.keep_counts(&self.resource, &self.core.metrics());
        }
        self.cancelled.cancel();
    }
}

impl SharedInformer {
    /// Returns the objects. Clones of the store keep the watch alive.
    pub fn store(&self) -> Store {
        self.watch.core.store().with_guard(self.watch.clone())
    }

    /// Returns the resource that is watched.
    pub fn resource(&self) -> &ApiResource {
        &self.watch.resource
    }

    /// Returns the options of the watch.
    pub fn options(&self) -> &WatchOptions {
        &self.watch.options
    }

    /// Whether the first list has ended.
    pub fn has_synced(&self) -> bool {
        self.watch.core.has_synced()
    }

    /// Waits until the first list has ended.
    pub async fn synced(&self) {
        self.watch.core.synced().await;
    }

    /// The resource version up to which everything has been seen, in all namespaces. Zero before the first lists have ended.
    pub fn high_water_mark(&self) -> u64 {
        self.watch.core.high_water_mark()
    }

    /// A receiver that changes whenever a watch has seen more. The store is at least as new as
    /// [`high_water_mark`](Self::high_water_mark) says.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.watch.core.progress()
    }

    /// Waits until everything up to a resource version has been seen, in all namespaces.
    pub async fn seen(&self, resource_version: u64) {
        self.watch.core.seen(resource_version).await;
    }

    /// Adds a named index over all objects. Returns whether there was none of that name; an existing one is kept.
    pub fn add_index(&self, name: &str, function: IndexFn) -> bool {
        // Nothing is locked here while the index function and the listeners run: they may call back.
        let added = self.watch.core.add_index(name, function.clone());
        if added {
            self.watch.indexes.lock().insert(name.to_owned(), function);
        }
        added
    }

    /// Adds a handler, which runs in a task of its own. It gets every object as an initial
    /// [`Delta::Added`](windlass_cache::Delta::Added), then every change.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn add_handler(&self, handler: impl DeltaHandler, options: HandlerOptions) -> HandlerRegistration {
        let (guard, subscription) = self.watch.core.subscribe();
        let guard = Arc::new(guard);
        let delivery = Delivery {
            handler: Arc::new(handler),
            task: format!("handler of {}", self.watch.resource.plural),
            supervisor: self.watch.supervisor.clone(),
            resync: options.resync,
        };
        delivery.spawn(subscription, Arc::downgrade(&guard));
        HandlerRegistration { guard, _watch: self.watch.clone() }
    }

    /// Adds a callback for failures of the watch and for objects that could not be read. It is called from the watch's task: it
    /// must be quick, and may call back into the informer.
    pub fn on_notice(&self, listener: impl Fn(&Notice) + Send + Sync + 'static) {
        self.watch.listeners.write().push(Arc::new(listener));
    }

    /// Returns the last failure of the watch, until it has recovered.
    pub fn last_failure(&self) -> Option<String> {
        self.failing().map(|failing| failing.last)
    }

    /// Returns the failures since the watch worked last.
    pub(crate) fn failing(&self) -> Option<Failing> {
        self.watch.log.failing()
    }

    /// Returns what the informer has counted, and how large the cache is.
    pub fn metrics(&self) -> InformerMetrics {
        self.watch.core.metrics()
    }

    /// Has the watch list its kind again, at growing intervals, as long as the cache holds this object.
    pub(crate) fn report_undecodable(&self, object: &RawObject) {
        let source = self.source_of(object.namespace());
        if let Some(objects) = source.and_then(|source| self.watch.undecodable.get(usize::from(source.0))) {
            objects.report(object);
        }
    }

    /// Whether both are clones of one informer.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.watch, &other.watch)
    }

    /// The watch that serves a namespace; `None` if none does.
    pub(super) fn source_of(&self, namespace: Option<&str>) -> Option<SourceId> {
        let namespaces = &self.watch.options.namespaces;
        if namespaces.is_empty() {
            return Some(SourceId(0));
        }
        let place = namespaces.iter().position(|watched| Some(watched.as_str()) == namespace)?;
        Some(SourceId(place as u16))
    }
}

impl CacheView for SharedInformer {
    fn object(&self, key: &ObjectKey) -> Option<(String, u64)> {
        let object = self.watch.core.store().get(key)?;
        Some((object.uid().to_owned(), object.revision()))
    }

    fn high_water_mark(&self, namespace: Option<&str>) -> u64 {
        // What no watch serves is never seen, so there is nothing to wait for.
        self.source_of(namespace).map_or(u64::MAX, |source| self.watch.core.high_water_mark_of(source))
    }

    fn has_shape(&self, api_version: &str, kind: &str) -> bool {
        // All shapes have the metadata.
        let resource = &self.watch.resource;
        self.watch.options.metadata_only || (resource.api_version == api_version && resource.kind == kind)
    }

    fn admits(&self, object: &RawObject) -> Admission {
        self.watch.options.admits(object)
    }

    fn has_index(&self, index: &str) -> bool {
        self.watch.indexes.lock().contains_key(index)
    }

    fn index_values(&self, index: &str, object: &RawObject) -> Vec<String> {
        let function = self.watch.indexes.lock().get(index).cloned();
        function.map_or_else(Vec::new, |function| function.values(object))
    }
}

impl std::fmt::Debug for SharedInformer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedInformer")
            .field("resource", &self.watch.resource.plural)
            .finish_non_exhaustive()
    }
}

/// Options of a handler.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// How often every object is delivered again, as an update that changes nothing. Default: never.
    pub resync: Option<Duration>,
}

impl HandlerOptions {
    /// Delivers every object again this often, as an update that changes nothing. Zero turns it off.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }
}

/// A guard for a registered handler. Dropping the last clone removes the handler.
#[derive(Clone)]
pub struct HandlerRegistration {
    guard: Arc<SubscriptionGuard>,
    _watch: Arc<SharedWatch>,
}

impl HandlerRegistration {
    /// Whether the whole initial list has been delivered to the handler.
    pub fn has_synced(&self) -> bool {
        self.guard.has_synced()
    }

    /// Waits until the whole initial list has been delivered to the handler.
    pub fn synced(&self) -> impl Future<Output = ()> + Send + 'static {
        self.guard.synced()
    }

    /// Delivers every object again.
    pub fn resync(&self) {
        self.guard.resync();
    }

    /// The number of changes that wait for the handler.
    pub fn backlog(&self) -> usize {
        self.guard.backlog()
    }

    /// Removes the handler, if this is the last clone.
    pub fn remove(self) {}
}

impl std::fmt::Debug for HandlerRegistration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerRegistration").field("has_synced", &self.has_synced()).finish_non_exhaustive()
    }
}
