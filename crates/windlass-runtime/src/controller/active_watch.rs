//! The watches of a controller.

use std::sync::Arc;

use windlass_cache::Delta;
use windlass_workqueue::{LOW_PRIORITY, WorkQueue};

use crate::{
    context::Caches,
    error::{BoxError, Result},
    handler::{Enqueuer, EventHandler, HandlerContext, QueueKey},
    informer::{DeltaSubscription, HandlerOptions, SharedInformer},
    predicate::Predicate,
    read_your_writes::{KeyJournal, change_of},
};

/// A watch and the watch's informer, before the handler is added.
pub(super) struct Prepared<Q: QueueKey> {
    pub(super) informer: SharedInformer,
    pub(super) enqueuer: Arc<QueuedWatch<Q>>,
    pub(super) options: HandlerOptions,
    pub(super) declared: Option<Declaration>,
}

/// A watch with a handler. Dropping the value removes the handler; the watch stops when the last user is
/// gone.
pub(super) struct ActiveWatch {
    pub(super) informer: SharedInformer,
    pub(super) subscription: DeltaSubscription,
    _declared: Option<Declaration>,
}

impl ActiveWatch {
    pub(super) fn new<Q: QueueKey>(prepared: Prepared<Q>) -> Self {
        let Prepared { informer, enqueuer, options, declared } = prepared;
        let subscription = informer.subscribe(move |delta: &Delta| enqueuer.handle(delta), options);
        Self { informer, subscription, _declared: declared }
    }

    /// Hands every object to the handler again, as at the start. The handler gets the earlier changes first: a deletion is in no store.
    pub(super) fn renew(&self) {
        self.subscription.renew();
    }
}

/// Makes a cache readable until dropped.
pub(super) struct Declaration {
    caches: Arc<Caches>,
    name: Option<String>,
    informer: SharedInformer,
}

impl Declaration {
    pub(super) fn new(caches: &Arc<Caches>, name: Option<String>, informer: &SharedInformer) -> Result<Self> {
        caches.declare(name.as_deref(), informer)?;
        Ok(Self { caches: caches.clone(), name, informer: informer.clone() })
    }
}

impl Drop for Declaration {
    fn drop(&mut self) {
        self.caches.retract(self.name.as_deref(), &self.informer);
    }
}

/// Maps the changes of a watch to keys, and queues the keys.
pub(super) struct QueuedWatch<Q: QueueKey> {
    pub(super) queue: WorkQueue<Q>,
    pub(super) handler: Arc<dyn EventHandler<Q>>,
    /// The predicates of all watches of the controller.
    pub(super) common: Arc<Vec<Predicate>>,
    pub(super) own: Vec<Predicate>,
    pub(super) journal: Arc<KeyJournal<Q>>,
    pub(super) cx: HandlerContext,
}

impl<Q: QueueKey> QueuedWatch<Q> {
    fn handle(&self, delta: &Delta) -> Result<(), BoxError> {
        if !self.common.iter().chain(&self.own).all(|predicate| predicate.matches(delta)) {
            return Ok(());
        }
        // A change has priority over keys without a change.
        let priority = if delta.is_unchanged() { LOW_PRIORITY } else { 0 };
        let mut keys = Enqueuer::new(&self.queue, priority);
        if self.journal.skips_own_writes()
            && let Some(change) = change_of(delta)
        {
            keys = keys.without_own(&self.journal, change);
        }
        self.handler.handle(delta, &self.cx, &mut keys)
    }
}
