//! The link between an informer and a handler.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::{
    Handler, SharedInformer,
    backlog::{Backlog, Entry},
    handler::tell,
};
use crate::{Delta, RawObject};

/// What waits for one handler.
#[derive(Debug)]
pub(super) struct Mailbox {
    backlog: Mutex<Backlog>,
    filled: Notify,
    closed: AtomicBool,
    synced: watch::Sender<bool>,
}

impl Mailbox {
    pub(super) fn new(initial: Vec<RawObject>) -> Self {
        Self {
            backlog: Mutex::new(Backlog::new(initial)),
            filled: Notify::new(),
            closed: AtomicBool::new(false),
            synced: watch::Sender::new(false),
        }
    }

    /// The first list has come, and nothing before it.
    pub(super) fn push_initial(&self, objects: Vec<RawObject>) {
        self.backlog.lock().push_initial(objects);
        self.filled.notify_one();
    }

    pub(super) fn extend(&self, deltas: impl ExactSizeIterator<Item = Delta>) {
        if deltas.len() == 0 {
            return;
        }
        let mut backlog = self.backlog.lock();
        deltas.for_each(|delta| backlog.push(delta));
        drop(backlog);
        self.filled.notify_one();
    }

    pub(super) fn push_synced(&self) {
        self.backlog.lock().push_synced();
        self.filled.notify_one();
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
}

/// A handler's place at an informer. Dropping it removes the handler.
#[derive(Debug)]
pub struct HandlerRegistration {
    informer: SharedInformer,
    number: u64,
    mailbox: Arc<Mailbox>,
}

impl HandlerRegistration {
    pub(super) fn new(informer: SharedInformer, number: u64, mailbox: Arc<Mailbox>) -> Self {
        Self { informer, number, mailbox }
    }

    /// Whether the handler has been told of its whole initial list.
    pub fn has_synced(&self) -> bool {
        *self.mailbox.synced.borrow()
    }

    /// Waits until the handler has been told of its whole initial list, or is removed.
    pub fn synced(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut synced = self.mailbox.synced.subscribe();
        async move {
            let _ = synced.wait_for(|synced| *synced).await;
        }
    }

    /// Tells the handler of all objects again, as updates that change nothing.
    pub fn resync(&self) {
        self.informer.resync(&self.mailbox);
    }

    /// How many changes the handler has not been told yet.
    pub fn backlog(&self) -> usize {
        self.mailbox.len()
    }

    /// Removes the handler. A call that is under way ends; there are no further ones.
    pub fn remove(self) {}
}

impl Drop for HandlerRegistration {
    fn drop(&mut self) {
        self.informer.unsubscribe(self.number);
    }
}

/// Tells a handler what waits for it.
#[derive(Debug)]
pub struct Subscription {
    mailbox: Arc<Mailbox>,
}

/// So many changes are taken at once.
const BATCH: usize = 256;

impl Subscription {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Self {
        Self { mailbox }
    }

    /// Waits for changes and tells the handler of some. Answers `false` once the handler has been removed.
    pub async fn tell(&mut self, handler: &dyn Handler) -> bool {
        loop {
            if self.mailbox.closed.load(Ordering::Acquire) {
                return false;
            }
            let batch = self.mailbox.backlog.lock().take(BATCH);
            if !batch.is_empty() {
                self.tell_all(handler, &batch);
                return true;
            }
            self.mailbox.filled.notified().await;
        }
    }

    fn tell_all(&self, handler: &dyn Handler, batch: &[Entry]) {
        for entry in batch {
            if self.mailbox.closed.load(Ordering::Acquire) {
                return;
            }
            match entry {
                Entry::Delta(delta) => tell(handler, delta),
                Entry::Replaced { last, added } => {
                    tell(handler, last);
                    tell(handler, added);
                }
                Entry::Synced => {
                    self.mailbox.synced.send_replace(true);
                }
                Entry::Nothing => {}
            }
        }
    }
}
