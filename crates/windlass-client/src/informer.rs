//! The cache of a kind in an informer factory.

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use windlass_runtime::{
    Delta, Lister,
    informer::{HandlerOptions, HandlerRegistration, IndexFn, SharedInformer, Store},
};

use crate::event_handler::{ResourceEventHandler, dispatch};

/// The cache of a kind, with event handlers. Cheap to clone.
///
/// An informer belongs to an [`InformerFactory`](crate::InformerFactory). The factory starts the informer,
/// and keeps the informer until the factory is dropped.
pub struct SharedIndexInformer<K> {
    kept: Arc<Kept>,
    resync: Duration,
    kind: PhantomData<fn() -> K>,
}

/// The factory's part of an informer: the watch and the handlers. Handlers live until removed.
pub(crate) struct Kept {
    pub(crate) informer: SharedInformer,
    handlers: Mutex<Vec<(u64, HandlerRegistration)>>,
    next: AtomicU64,
}

/// Names an event handler of an informer. Dropping the registration has no effect; the handler lives until
/// [`remove_event_handler`](SharedIndexInformer::remove_event_handler), or as long as the factory.
#[derive(Clone)]
pub struct ResourceEventHandlerRegistration {
    number: u64,
    registration: HandlerRegistration,
}

impl Kept {
    pub(crate) fn new(informer: SharedInformer) -> Arc<Self> {
        Arc::new(Self { informer, handlers: Mutex::default(), next: AtomicU64::new(0) })
    }

    /// Removes all handlers.
    pub(crate) fn remove_handlers(&self) {
        self.handlers.lock().clear();
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> SharedIndexInformer<K> {
    pub(crate) fn new(kept: Arc<Kept>, resync: Duration) -> Self {
        Self { kept, resync, kind: PhantomData }
    }

    /// Adds a handler with the resync period of the factory. The handler gets every object as an addition,
    /// then every change, in a separate task.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn add_event_handler(
        &self,
        handler: impl ResourceEventHandler<K>,
    ) -> ResourceEventHandlerRegistration {
        self.add_event_handler_with_resync_period(handler, self.resync)
    }

    /// Adds a handler that gets every object again in each resync period, as an update without a change. Zero
    /// means never.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn add_event_handler_with_resync_period(
        &self,
        handler: impl ResourceEventHandler<K>,
        resync: Duration,
    ) -> ResourceEventHandlerRegistration {
        let decoder = self.kept.informer.store().decoder::<K>();
        let registration = self.kept.informer.add_handler(
            move |delta: &Delta| dispatch(&handler, &decoder, delta),
            HandlerOptions::default().resync(resync),
        );
        let number = self.kept.next.fetch_add(1, Ordering::Relaxed);
        self.kept.handlers.lock().push((number, registration.clone()));
        ResourceEventHandlerRegistration { number, registration }
    }

    /// Removes a handler of this informer.
    pub fn remove_event_handler(&self, registration: ResourceEventHandlerRegistration) {
        self.kept.handlers.lock().retain(|(number, _)| *number != registration.number);
    }

    /// Returns a lister of the cache.
    pub fn lister(&self) -> Lister<K> {
        self.kept.informer.lister()
    }

    /// Returns the objects as bytes with indexes, not decoded.
    pub fn indexer(&self) -> Store {
        self.kept.informer.store()
    }

    /// Adds a named index over all objects. Returns `false` if an index with the name exists; the existing
    /// index is kept.
    pub fn add_indexer(&self, name: &str, function: IndexFn) -> bool {
        self.kept.informer.add_index(name, function)
    }

    /// Returns whether the first list has ended.
    pub fn has_synced(&self) -> bool {
        self.kept.informer.has_synced()
    }

    /// Waits until the first list has ended.
    pub async fn synced(&self) {
        self.kept.informer.synced().await;
    }

    /// Returns the resource version up to which the informer has seen every change. Zero before the end of
    /// the first list.
    pub fn last_sync_resource_version(&self) -> u64 {
        self.kept.informer.high_water_mark()
    }

    /// Returns the runtime's informer of this informer.
    pub fn shared(&self) -> &SharedInformer {
        &self.kept.informer
    }
}

impl ResourceEventHandlerRegistration {
    /// Returns whether the whole initial list has been delivered to the handler.
    pub fn has_synced(&self) -> bool {
        self.registration.has_synced()
    }

    /// Waits until the whole initial list has been delivered to the handler.
    pub async fn synced(&self) {
        self.registration.synced().await;
    }
}

impl<K> Clone for SharedIndexInformer<K> {
    fn clone(&self) -> Self {
        Self { kept: self.kept.clone(), resync: self.resync, kind: PhantomData }
    }
}

impl<K> fmt::Debug for SharedIndexInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedIndexInformer")
            .field("resource", &self.kept.informer.resource().plural)
            .field("resync", &self.resync)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ResourceEventHandlerRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceEventHandlerRegistration")
            .field("has_synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}
