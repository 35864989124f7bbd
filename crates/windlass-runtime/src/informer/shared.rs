//! One watch of a kind, and those who share it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
    time::Duration,
};

use kube_core::ApiResource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{sync::watch, time::interval_at};
use tokio_util::sync::CancellationToken;
use windlass_cache::{Handler, IndexFn, InformerMetrics, Lister, Notice, RawObject, Store};

use super::{WatchOptions, driver::Driver, factory::Release};

/// Told of failures and other events of a watch.
pub(super) type Listener = Box<dyn Fn(&Notice) + Send + Sync>;

/// One watch of a kind with its cache. Cheap to clone.
///
/// The watch lives as long as a clone, a [`Store`] or [`Lister`] of it, or a registered handler.
#[derive(Clone)]
pub struct SharedInformer {
    pub(super) lease: Arc<Lease>,
}

/// What all users of a watch hold. The last to drop it ends the watch.
pub(super) struct Lease {
    pub(super) core: windlass_cache::SharedInformer,
    pub(super) resource: ApiResource,
    pub(super) options: WatchOptions,
    pub(super) drivers: Mutex<Vec<Driver>>,
    pub(super) ended: CancellationToken,
    pub(super) listeners: Arc<Mutex<Vec<Listener>>>,
    /// Tells the factory when the last user has gone.
    pub(super) release: OnceLock<Release>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl SharedInformer {
    /// The objects. Clones and listers of the store keep the watch alive.
    pub fn store(&self) -> Store {
        self.lease.core.store().with_guard(self.lease.clone())
    }

    /// A view that decodes what it reads.
    pub fn lister<K: DeserializeOwned + Send + Sync + 'static>(&self) -> Lister<K> {
        self.store().lister()
    }

    /// What is watched.
    pub fn resource(&self) -> &ApiResource {
        &self.lease.resource
    }

    /// How it is watched.
    pub fn options(&self) -> &WatchOptions {
        &self.lease.options
    }

    /// Whether the first list is through.
    pub fn has_synced(&self) -> bool {
        self.lease.core.has_synced()
    }

    /// Waits until the first list is through.
    pub async fn synced(&self) {
        self.lease.core.synced().await;
    }

    /// Everything up to this resourceVersion has been seen; zero before the first list is through.
    pub fn high_water_mark(&self) -> u64 {
        self.lease.core.high_water_mark()
    }

    /// Follows [`Self::high_water_mark`]. Whoever is woken finds the store at least as new.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.lease.core.progress()
    }

    /// Waits until everything up to a resourceVersion has been seen.
    pub async fn seen(&self, resource_version: u64) {
        self.lease.core.seen(resource_version).await;
    }

    /// Adds a named index; answers whether there was none of that name.
    pub fn add_index(&self, name: &str, function: IndexFn) -> bool {
        self.lease.core.add_index(name, function)
    }

    /// Adds a handler. It is told of all objects that are there, then of every change, in a task of its own.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn add_handler(
        &self,
        handler: impl Handler + 'static,
        options: HandlerOptions,
    ) -> HandlerRegistration {
        let (registration, mut subscription) = self.lease.core.subscribe();
        let registration = Arc::new(registration);
        let resync = Arc::downgrade(&registration);
        let handler = Careful { handler, resource: self.lease.resource.plural.clone() };
        tokio::spawn(async move {
            let period = options.resync.filter(|period| !period.is_zero());
            let mut ticks = period.map(|period| interval_at(tokio::time::Instant::now() + period, period));
            loop {
                let due = async {
                    match &mut ticks {
                        Some(ticks) => drop(ticks.tick().await),
                        None => std::future::pending().await,
                    }
                };
                let alive = tokio::select! {
                    biased;
                    () = due => {
                        if let Some(registration) = resync.upgrade() {
                            registration.resync();
                        }
                        true
                    }
                    alive = subscription.tell(&handler) => alive,
                };
                if !alive {
                    return;
                }
                // Who has been woken by this, on the same thread, waits for a pause.
                tokio::task::yield_now().await;
            }
        });
        HandlerRegistration { registration, _lease: self.lease.clone() }
    }

    /// Adds a listener that is told of failures of the watch and of objects that could not be read.
    pub fn on_notice(&self, listener: impl Fn(&Notice) + Send + Sync + 'static) {
        self.lease.listeners.lock().push(Box::new(listener));
    }

    /// What has been counted, and how large the cache is now.
    pub fn metrics(&self) -> InformerMetrics {
        self.lease.core.metrics()
    }
}

impl std::fmt::Debug for SharedInformer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedInformer")
            .field("resource", &self.lease.resource.plural)
            .finish_non_exhaustive()
    }
}

/// How a handler is served.
#[derive(Clone, Copy, Debug, Default)]
pub struct HandlerOptions {
    /// Tells the handler of all objects again, this often, as updates that change nothing. Default: never.
    pub resync: Option<Duration>,
}

/// A handler's place. Dropping it removes the handler.
#[derive(Clone)]
pub struct HandlerRegistration {
    registration: Arc<windlass_cache::HandlerRegistration>,
    _lease: Arc<Lease>,
}

impl HandlerRegistration {
    /// Whether the handler has been told of its whole initial list.
    pub fn has_synced(&self) -> bool {
        self.registration.has_synced()
    }

    /// Waits until the handler has been told of its whole initial list.
    pub fn synced(&self) -> impl Future<Output = ()> + Send + 'static {
        self.registration.synced()
    }

    /// Tells the handler of all objects again.
    pub fn resync(&self) {
        self.registration.resync();
    }

    /// How many changes the handler has not been told yet.
    pub fn backlog(&self) -> usize {
        self.registration.backlog()
    }

    /// Removes the handler, when this is the last clone.
    pub fn remove(self) {}
}

impl std::fmt::Debug for HandlerRegistration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerRegistration").field("has_synced", &self.has_synced()).finish_non_exhaustive()
    }
}

/// A handler that panics is told of the next change nevertheless.
struct Careful<H> {
    handler: H,
    resource: String,
}

impl<H: Handler> Careful<H> {
    fn call(&self, object: &RawObject, call: impl FnOnce(&H)) {
        if catch_unwind(AssertUnwindSafe(|| call(&self.handler))).is_err() {
            tracing::error!(resource = self.resource, object = %object.key(), "a handler panicked");
        }
    }
}

impl<H: Handler> Handler for Careful<H> {
    fn on_add(&self, object: &RawObject, initial: bool) {
        self.call(object, |handler| handler.on_add(object, initial));
    }

    fn on_update(&self, old: &RawObject, new: &RawObject) {
        self.call(new, |handler| handler.on_update(old, new));
    }

    fn on_delete(&self, last: &RawObject, final_state_unknown: bool) {
        self.call(last, |handler| handler.on_delete(last, final_state_unknown));
    }
}
