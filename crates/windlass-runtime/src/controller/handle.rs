//! A handle to a running controller.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_cache::ObjectKey;
use windlass_workqueue::AddOptions;

use super::Running;
use crate::{
    error::{Error, Result},
    handler::QueueKey,
    watch::Watch,
};

/// Names a watch that was added while the controller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(pub(super) u64);

/// Queues keys of a controller, and adds and removes watches while the controller runs. Cheap to clone.
pub struct ControllerHandle<Q: QueueKey = ObjectKey> {
    link: Arc<Link<Q>>,
}

struct Link<Q: QueueKey> {
    /// The running controller. Weak, because a reconcile function may hold a handle of its own controller.
    running: watch::Sender<Option<Weak<Running<Q>>>>,
    /// Keys that were queued before the controller had a queue.
    early: Mutex<Vec<(Q, AddOptions)>>,
}

impl<Q: QueueKey> Clone for ControllerHandle<Q> {
    fn clone(&self) -> Self {
        Self { link: self.link.clone() }
    }
}

impl<Q: QueueKey> ControllerHandle<Q> {
    pub(super) fn new() -> Self {
        Self { link: Arc::new(Link { running: watch::channel(None).0, early: Mutex::default() }) }
    }

    pub(super) fn connect(&self, running: &Arc<Running<Q>>) {
        let early = {
            let mut early = self.link.early.lock();
            self.link.running.send_replace(Some(Arc::downgrade(running)));
            std::mem::take(&mut *early)
        };
        for (key, options) in early {
            running.queue.add_with(key, options);
        }
    }

    /// Queues a key. Has no effect after the controller has ended.
    pub fn enqueue(&self, key: Q) {
        self.enqueue_with(key, AddOptions::new());
    }

    /// Queues a key with a delay, with a priority, or rate limited.
    pub fn enqueue_with(&self, key: Q, options: AddOptions) {
        // The queue is called without a lock: a rate limiter of the user's may call back.
        let running = self.link.running.borrow().clone().or_else(|| {
            let mut early = self.link.early.lock();
            let running = self.link.running.borrow().clone();
            if running.is_none() {
                early.push((key.clone(), options));
            }
            running
        });
        if let Some(running) = running.and_then(|running| running.upgrade()) {
            running.queue.add_with(key, options);
        }
    }

    /// Adds a watch as soon as the controller runs, and waits until the first list of the watch has ended. Watches of the manager with equal
    /// options share one cache.
    ///
    /// # Errors
    /// The first list did not end in time, a read of the kind would be ambiguous, or the controller has stopped.
    pub async fn watch(&self, watch: Watch<Q>) -> Result<WatchId> {
        let mut running = self.link.running.subscribe();
        let running = running.wait_for(Option::is_some).await.map_err(|_| Error::stopped())?.clone();
        let running = running.and_then(|running| running.upgrade()).ok_or_else(Error::stopped)?;
        running.add_watch(watch).await
    }

    /// Removes a watch that [`watch`](Self::watch) added. A cache without further users is dropped.
    pub fn unwatch(&self, id: WatchId) {
        let running = self.link.running.borrow().as_ref().and_then(Weak::upgrade);
        if let Some(running) = running {
            running.remove_watch(id);
        }
    }
}
