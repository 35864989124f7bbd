//! The watch of a kind, and the users who share the watch.

use std::{
    collections::BTreeMap,
    marker::PhantomData,
    sync::{Arc, OnceLock},
    time::Duration,
};

use kube_core::ApiResource;
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_cache::{
    Delta, IndexFn, InformerCore, InformerMetrics, ObjectKey, Query, RawObject, ReflectorEvent, ReflectorId,
    Store, UnknownIndex,
};

use super::{
    CacheOptions,
    delivery::{Delivery, HandlerResult},
    driver::WatchSource,
    event_handler::{ResourceEventHandler, dispatch},
    factory::Release,
    log::{Failing, WatchLog},
    registration::{DeltaSubscription, EventHandlers, ResourceEventHandlerRegistration},
    undecodable::UndecodableObjects,
};
use crate::{
    read_your_writes::{Admission, CacheView},
    supervisor::Supervisor,
};

/// A callback for failures and other notices of a watch.
pub(super) type Listener = Arc<dyn Fn(&ReflectorEvent) + Send + Sync>;

/// The watch of a kind, with its cache and event handlers. Cheap to clone. `K` is the type that objects are read as.
///
/// The watch lives as long as a clone, a [`Store`] or [`Lister`](crate::Lister) of the informer, or a [subscription](DeltaSubscription). Event handlers
/// live as long as the informer and the clones of the informer.
pub struct SharedInformer<K = RawObject> {
    pub(super) watch: Arc<SharedWatch>,
    handlers: Arc<EventHandlers>,
    handler_options: HandlerOptions,
    object: PhantomData<fn() -> K>,
}

/// The part of an informer that all users of a watch hold. Dropping the last handle ends the watch.
pub(super) struct SharedWatch {
    pub(super) core: InformerCore,
    pub(super) resource: ApiResource,
    pub(super) options: CacheOptions,
    /// The watches to start, a watch for each namespace.
    pub(super) sources: Mutex<Vec<WatchSource>>,
    /// The objects that do not decode, for each namespace.
    pub(super) undecodable: Vec<Arc<UndecodableObjects>>,
    pub(super) cancelled: CancellationToken,
    pub(super) listeners: Arc<RwLock<Vec<Listener>>>,
    pub(super) log: Arc<WatchLog>,
    pub(super) indexes: Mutex<BTreeMap<String, IndexFn>>,
    pub(super) supervisor: Supervisor,
    /// Removes the watch from the factory when the last user is gone.
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
    pub(super) fn new(watch: Arc<SharedWatch>) -> Self {
        Self {
            watch,
            handlers: Arc::default(),
            handler_options: HandlerOptions::default(),
            object: PhantomData,
        }
    }

    /// Sets the options of event handlers that are added without options.
    pub(super) fn with_handlers(self, handler_options: HandlerOptions) -> Self {
        Self { handler_options, ..self }
    }

    pub(super) fn remove_event_handlers(&self) {
        self.handlers.clear();
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> SharedInformer<K> {
    /// Adds a handler, which runs in a task of its own. The handler gets every object as an addition, then every change. The resync period is
    /// the period of the factory, if the factory [keeps](super::SharedInformerFactory::informer_for) the informer.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn add_event_handler(
        &self,
        handler: impl ResourceEventHandler<K>,
    ) -> ResourceEventHandlerRegistration {
        self.add_event_handler_with_options(handler, self.handler_options)
    }

    /// Works like [`add_event_handler`](Self::add_event_handler), with options: Go's
    /// `AddEventHandlerWithOptions` and `AddEventHandlerWithResyncPeriod`.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn add_event_handler_with_options(
        &self,
        handler: impl ResourceEventHandler<K>,
        options: HandlerOptions,
    ) -> ResourceEventHandlerRegistration {
        let decoder = self.store().decoder::<K>();
        self.handlers.add(self.subscribe(move |delta: &Delta| dispatch(&handler, &decoder, delta), options))
    }
}

impl<K> SharedInformer<K> {
    /// Removes a handler of this informer.
    pub fn remove_event_handler(&self, registration: &ResourceEventHandlerRegistration) {
        self.handlers.remove(registration);
    }

    /// Changes the type that objects are read as. The watch and the handlers are the same.
    pub fn read_as<T>(&self) -> SharedInformer<T> {
        SharedInformer {
            watch: self.watch.clone(),
            handlers: self.handlers.clone(),
            handler_options: self.handler_options,
            object: PhantomData,
        }
    }

    /// Returns the objects. Clones of the store keep the watch alive.
    pub fn store(&self) -> Store {
        self.watch.core.store().with_guard(self.watch.clone())
    }

    /// Returns the object under a key.
    pub(crate) fn cached(&self, key: &ObjectKey) -> Option<RawObject> {
        self.watch.core.store().get(key)
    }

    /// Returns the objects that match a query.
    pub(crate) fn cached_matches(&self, query: &Query<'_>) -> Result<Vec<RawObject>, UnknownIndex> {
        self.watch.core.store().query(query)
    }

    /// Returns the resource that is watched.
    pub fn resource(&self) -> &ApiResource {
        &self.watch.resource
    }

    /// Returns the options of the watch.
    pub fn options(&self) -> &CacheOptions {
        &self.watch.options
    }

    /// Returns whether the first list has ended.
    pub fn has_synced(&self) -> bool {
        self.watch.core.has_synced()
    }

    /// Waits until the first list has ended.
    pub async fn synced(&self) {
        self.watch.core.synced().await;
    }

    /// Returns the resource version up to which the watch has seen every change, in all namespaces. Zero before the first lists have ended.
    pub fn last_sync_resource_version(&self) -> u64 {
        self.watch.core.high_water_mark()
    }

    /// Returns a receiver that changes whenever a watch has seen more. The store is at least as new as
    /// [`last_sync_resource_version`](Self::last_sync_resource_version).
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.watch.core.progress()
    }

    /// Waits until everything up to a resource version has been seen, in all namespaces.
    pub async fn seen(&self, resource_version: u64) {
        self.watch.core.seen(resource_version).await;
    }

    /// Adds a named index over all objects. Returns false if an index has the name already: the existing index is kept.
    pub fn add_index(&self, name: &str, function: IndexFn) -> bool {
        // Unseen writes know the index before readers of the cache do.
        self.watch.indexes.lock().entry(name.to_owned()).or_insert_with(|| function.clone());
        // No lock is held while the index function and the listeners run: both may call back.
        self.watch.core.add_index(name, function)
    }

    /// Calls a function with every change, without decoding the objects. The function runs in a task of its own, gets every object as an
    /// initial [`Delta::Added`], then every change, in order, one call at a time. The function may return nothing, or a `Result<(), E>`.
    ///
    /// The function should do little, usually add a key to a queue. A function that falls behind by more than 1024 changes gets the latest
    /// state of each object, and each deletion, instead of every state, and never delays the cache or the remaining handlers. An update then
    /// has the state that the function got last and the latest state: the function is not told about an owner or a label that only a state in
    /// between had. Of many objects that had one name in turn, the function gets the first and the last.
    ///
    /// A change on which the function fails or panics is logged, counted, and repeated with back-off (from 100 ms to 1 minute), unless a
    /// later change of the same object replaces the change. Changes of other objects go on meanwhile. If the object has been deleted, a
    /// change on which the function panics is given up after some minutes.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn subscribe<R: HandlerResult>(
        &self,
        handler: impl Fn(&Delta) -> R + Send + Sync + 'static,
        options: HandlerOptions,
    ) -> DeltaSubscription {
        let (guard, subscription) = self.watch.core.subscribe();
        let guard = Arc::new(guard);
        let delivery = Delivery {
            handler: Box::new(move |delta| handler(delta).into_result()),
            task: format!("handler of {}", self.watch.resource.plural),
            supervisor: self.watch.supervisor.clone(),
            resync: options.resync,
        };
        delivery.spawn(subscription, Arc::downgrade(&guard));
        DeltaSubscription { guard, _watch: self.watch.clone() }
    }

    /// Adds a callback for failures of the watch and for objects that could not be read. The watch's task calls the callback, which must be
    /// quick and may call back into the informer.
    pub fn on_reflector_event(&self, listener: impl Fn(&ReflectorEvent) + Send + Sync + 'static) {
        self.watch.listeners.write().push(Arc::new(listener));
    }

    /// Returns the last failure of a watch that has not recovered yet.
    pub fn last_failure(&self) -> Option<String> {
        self.failing().map(|failing| failing.last)
    }

    /// Returns the failures of the watch that has been failing for the longest time.
    pub(crate) fn failing(&self) -> Option<Failing> {
        self.watch.log.failing()
    }

    /// Returns the failures of the watch that serves a namespace; `None` if the watch works.
    pub(crate) fn failing_in(&self, namespace: Option<&str>) -> Option<Failing> {
        self.watch.log.failing_of(self.source_of(namespace)?)
    }

    /// Returns the counters of the informer and the size of the cache.
    pub fn metrics(&self) -> InformerMetrics {
        self.watch.core.metrics()
    }

    /// Lists the kind again, at growing intervals, as long as the cache holds this object.
    pub(crate) fn report_undecodable(&self, object: &RawObject) {
        let source = self.source_of(object.namespace());
        if let Some(objects) = source.and_then(|source| self.watch.undecodable.get(usize::from(source.0))) {
            objects.report(object);
        }
    }

    /// Returns whether both are clones of the same informer.
    pub(crate) fn is_same<T>(&self, other: &SharedInformer<T>) -> bool {
        Arc::ptr_eq(&self.watch, &other.watch)
    }

    /// Returns the watch that serves a namespace; `None` if none does.
    pub(super) fn source_of(&self, namespace: Option<&str>) -> Option<ReflectorId> {
        let namespaces = &self.watch.options.namespaces;
        if namespaces.is_empty() {
            return Some(ReflectorId(0));
        }
        let place = namespaces.iter().position(|watched| Some(watched.as_str()) == namespace)?;
        Some(ReflectorId(place as u16))
    }
}

impl CacheView for SharedInformer {
    fn object(&self, key: &ObjectKey) -> Option<RawObject> {
        self.cached(key)
    }

    fn high_water_mark(&self, namespace: Option<&str>) -> u64 {
        // A change of a namespace without a watch is never seen: the write is not waited for.
        self.source_of(namespace).map_or(u64::MAX, |source| self.watch.core.high_water_mark_of(source))
    }

    fn has_shape(&self, api_version: &str, kind: &str) -> bool {
        // All shapes have the metadata.
        let resource = &self.watch.resource;
        self.watch.options.metadata_only || (resource.api_version == api_version && resource.kind == kind)
    }

    fn kind_of_metadata(&self) -> Option<(&str, &str)> {
        let resource = &self.watch.resource;
        self.watch.options.metadata_only.then_some((&resource.api_version, &resource.kind))
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

impl<K> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        self.read_as()
    }
}

impl<K> std::fmt::Debug for SharedInformer<K> {
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
    /// The period after which every object is delivered again, as an update without a change. Default: never.
    pub resync: Option<Duration>,
}

impl HandlerOptions {
    /// Delivers every object again this often, as an update without a change. Zero means never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }
}
