//! Registered handlers of an informer.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use windlass_cache::SubscriptionGuard;

use super::shared::SharedWatch;

/// A subscription to the changes of a cache. Dropping the last clone ends the subscription.
#[derive(Clone)]
#[must_use = "dropping the subscription ends the subscription"]
pub struct DeltaSubscription {
    pub(super) guard: Arc<SubscriptionGuard>,
    pub(super) _watch: Arc<SharedWatch>,
}

impl DeltaSubscription {
    /// Returns whether the whole initial list has been delivered to the handler.
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

    /// Delivers every object again as an initial addition, after the changes that wait for the handler.
    pub(crate) fn renew(&self) {
        self.guard.renew();
    }

    /// Returns the number of changes that wait for the handler.
    pub fn backlog(&self) -> usize {
        self.guard.backlog()
    }
}

impl std::fmt::Debug for DeltaSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeltaSubscription").field("has_synced", &self.has_synced()).finish_non_exhaustive()
    }
}

/// A registered event handler of an informer. Dropping the registration does nothing: the handler stays until
/// [`remove_event_handler`](super::SharedInformer::remove_event_handler), or until the informer is dropped.
#[derive(Clone)]
pub struct ResourceEventHandlerRegistration {
    number: u64,
    /// Weak: a registration does not keep a removed handler.
    guard: Weak<SubscriptionGuard>,
}

impl ResourceEventHandlerRegistration {
    /// Returns whether the whole initial list has been delivered to the handler. False for a handler that was removed.
    pub fn has_synced(&self) -> bool {
        self.guard.upgrade().is_some_and(|guard| guard.has_synced())
    }

    /// Waits until the whole initial list has been delivered to the handler. Returns at once if the handler was removed.
    pub fn synced(&self) -> impl Future<Output = ()> + Send + 'static {
        let synced = self.guard.upgrade().map(|guard| guard.synced());
        async move {
            if let Some(synced) = synced {
                synced.await;
            }
        }
    }
}

impl std::fmt::Debug for ResourceEventHandlerRegistration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceEventHandlerRegistration")
            .field("has_synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}

/// The event handlers of an informer.
#[derive(Default)]
pub(super) struct EventHandlers {
    handlers: Mutex<Vec<(u64, DeltaSubscription)>>,
    next: AtomicU64,
}

impl EventHandlers {
    pub(super) fn add(&self, subscription: DeltaSubscription) -> ResourceEventHandlerRegistration {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let guard = Arc::downgrade(&subscription.guard);
        self.handlers.lock().push((number, subscription));
        ResourceEventHandlerRegistration { number, guard }
    }

    pub(super) fn remove(&self, registration: &ResourceEventHandlerRegistration) {
        let mut handlers = self.handlers.lock();
        let place = handlers.iter().position(|(number, _)| *number == registration.number);
        let removed = place.map(|place| handlers.swap_remove(place));
        drop(handlers);
        // Outside of the lock: the end of a subscription runs code of other parts.
        drop(removed);
    }

    pub(super) fn clear(&self) {
        let removed = std::mem::take(&mut *self.handlers.lock());
        drop(removed);
    }
}
