//! Subscriptions: the link between an informer and a handler.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::{
    InformerCore,
    backlog::{Backlog, Entry},
};
use crate::{Delta, RawObject};

/// The changes that wait for a subscription.
#[derive(Debug)]
pub(super) struct SubscriptionQueue {
    backlog: Mutex<Backlog>,
    filled: Notify,
    closed: AtomicBool,
    synced: watch::Sender<bool>,
}

impl SubscriptionQueue {
    pub(super) fn new(initial: Vec<RawObject>) -> Self {
        Self {
            backlog: Mutex::new(Backlog::new(initial)),
            filled: Notify::new(),
            closed: AtomicBool::new(false),
            synced: watch::Sender::new(false),
        }
    }

    /// Queues the objects of a first list, and then changes.
    pub(super) fn extend(&self, initial: Vec<RawObject>, deltas: impl ExactSizeIterator<Item = Delta>) {
        if initial.is_empty() && deltas.len() == 0 {
            return;
        }
        let mut backlog = self.backlog.lock();
        if !initial.is_empty() {
            backlog.push_initial(initial);
        }
        deltas.for_each(|delta| backlog.push(delta));
        drop(backlog);
        self.filled.notify_one();
    }

    pub(super) fn push_synced(&self) {
        self.backlog.lock().push_synced();
        self.filled.notify_one();
    }

    /// Queues all objects again, behind the changes so far.
    pub(super) fn renew(&self, objects: Vec<RawObject>, synced: bool) {
        let mut backlog = self.backlog.lock();
        backlog.renew(objects);
        if synced {
            backlog.push_synced();
        }
        self.synced.send_replace(false);
        drop(backlog);
        self.filled.notify_one();
    }

    /// Notes that the whole initial list has been delivered, unless all objects have been queued again since the list was taken.
    fn note_synced(&self, renewals: u64) {
        let backlog = self.backlog.lock();
        if backlog.renewals() == renewals {
            self.synced.send_replace(true);
        }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.filled.notify_one();
    }

    pub(super) fn len(&self) -> usize {
        self.backlog.lock().len()
    }

    pub(super) fn merged(&self) -> u64 {
        self.backlog.lock().merged()
    }

    pub(super) fn memory(&self) -> usize {
        self.backlog.lock().memory()
    }
}

/// A guard for a subscription. Dropping the guard ends the subscription.
#[derive(Debug)]
pub struct SubscriptionGuard {
    informer: InformerCore,
    number: u64,
    queue: Arc<SubscriptionQueue>,
}

impl SubscriptionGuard {
    pub(super) fn new(informer: InformerCore, number: u64, queue: Arc<SubscriptionQueue>) -> Self {
        Self { informer, number, queue }
    }

    /// Returns whether the whole initial list has been delivered.
    pub fn has_synced(&self) -> bool {
        *self.queue.synced.borrow()
    }

    /// Waits until the whole initial list has been delivered, or the subscription has ended.
    pub fn synced(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let mut synced = self.queue.synced.subscribe();
        async move {
            let _ = synced.wait_for(|synced| *synced).await;
        }
    }

    /// Delivers every object again, as a [`Delta::Updated`] without a change.
    pub fn resync(&self) {
        self.informer.resync(&self.queue);
    }

    /// Delivers every object again as an initial [`Delta::Added`], after the changes that wait for delivery. [`synced`](Self::synced) waits
    /// until every object has been delivered.
    pub fn renew(&self) {
        self.informer.renew(&self.queue);
    }

    /// Returns the number of changes that wait for delivery.
    pub fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// Ends the subscription. A running call of the handler completes; no further call begins.
    pub fn remove(self) {}
}

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        self.informer.unsubscribe(self.number);
    }
}

/// The receiving side of an informer's changes.
#[derive(Debug)]
pub struct Subscription {
    queue: Arc<SubscriptionQueue>,
}

/// The number of changes that are taken at once.
const BATCH: usize = 256;

impl Subscription {
    pub(super) fn new(queue: Arc<SubscriptionQueue>) -> Self {
        Self { queue }
    }

    /// Waits for changes and passes some of them to `handle`, in order. Returns `false` once the guard has been dropped.
    pub async fn deliver(&mut self, handle: &mut (dyn FnMut(&Delta) + Send)) -> bool {
        loop {
            if self.is_closed() {
                return false;
            }
            let batch = self.queue.backlog.lock().take(BATCH);
            if !batch.is_empty() {
                self.deliver_batch(handle, &batch);
                return true;
            }
            self.queue.filled.notified().await;
        }
    }

    /// Returns whether the guard has been dropped.
    fn is_closed(&self) -> bool {
        self.queue.closed.load(Ordering::Acquire)
    }

    fn deliver_batch(&self, handle: &mut (dyn FnMut(&Delta) + Send), batch: &[Entry]) {
        for entry in batch {
            if self.is_closed() {
                return;
            }
            match entry {
                Entry::Delta(delta) => handle(delta),
                Entry::Several(changes) => {
                    changes.iter().take_while(|_| !self.is_closed()).for_each(&mut *handle);
                }
                Entry::Synced(renewals) => self.queue.note_synced(*renewals),
                // A batch has the objects of a renewal as changes.
                Entry::Renewed(_) => {}
            }
        }
    }
}
