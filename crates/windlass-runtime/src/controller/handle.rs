//! A handle to a running controller.

use std::{
    ops::Deref,
    sync::{Arc, Weak},
};

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

impl<Q: QueueKey> Link<Q> {
    /// Sets the running controller. Returns the keys that were queued before.
    fn connect(&self, running: Weak<Running<Q>>) -> Vec<(Q, AddOptions)> {
        let mut early = self.early.lock();
        self.running.send_replace(Some(running));
        std::mem::take(&mut *early)
    }

    /// Returns the running controller. If there is none, keeps the key.
    fn running_or_keep(&self, key: &Q, options: AddOptions) -> Option<Weak<Running<Q>>> {
        // A statement of its own: `connect` waits for the readers of the channel while it holds the early keys.
        let running = self.running.borrow().clone();
        if running.is_some() {
            return running;
        }
        let mut early = self.early.lock();
        let running = self.running.borrow().clone();
        if running.is_none() {
            early.push((key.clone(), options));
        }
        running
    }
}

/// The handle in a controller. Dropping a controller that has never run ends the handles of the controller.
pub(super) struct OwnHandle<Q: QueueKey>(ControllerHandle<Q>);

impl<Q: QueueKey> OwnHandle<Q> {
    pub(super) fn new() -> Self {
        Self(ControllerHandle::new())
    }
}

impl<Q: QueueKey> Deref for OwnHandle<Q> {
    type Target = ControllerHandle<Q>;

    fn deref(&self) -> &ControllerHandle<Q> {
        &self.0
    }
}

impl<Q: QueueKey> Drop for OwnHandle<Q> {
    fn drop(&mut self) {
        let is_connected = self.link.running.borrow().is_some();
        if !is_connected {
            drop(self.link.connect(Weak::new()));
        }
    }
}

impl<Q: QueueKey> Clone for ControllerHandle<Q> {
    fn clone(&self) -> Self {
        Self { link: self.link.clone() }
    }
}

impl<Q: QueueKey> ControllerHandle<Q> {
    fn new() -> Self {
        Self { link: Arc::new(Link { running: watch::channel(None).0, early: Mutex::default() }) }
    }

    pub(super) fn connect(&self, running: &Arc<Running<Q>>) {
        for caches in &running.caches {
            let link = Arc::downgrade(&self.link);
            caches.set_handles(link);
        }
        for (key, options) in self.link.connect(Arc::downgrade(running)) {
            running.queue.add_with(key, options);
        }
    }

    /// Queues a key. Has no effect after the controller has ended, or was dropped without running.
    pub fn enqueue(&self, key: Q) {
        self.enqueue_with(key, AddOptions::new());
    }

    /// Queues a key with a delay, with a priority, or rate limited.
    pub fn enqueue_with(&self, key: Q, options: AddOptions) {
        // The queue is called without a lock: a rate limiter of the user's may call back.
        let running = self.link.running_or_keep(&key, options);
        if let Some(running) = running.and_then(|running| running.upgrade()) {
            running.queue.add_with(key, options);
        }
    }

    /// Adds a watch as soon as the controller runs, and waits until the first list of the watch has ended. Watches of the manager with equal
    /// options share one cache.
    ///
    /// # Errors
    /// The first list did not end in time, a read of the kind would be ambiguous, or the controller has stopped or does not run
    /// ([`Manager::select_controllers`](crate::Manager::select_controllers)).
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

#[cfg(test)]
mod tests {
    use std::{
        sync::{Barrier, mpsc},
        thread,
        time::Duration,
    };

    use super::*;

    const ROUNDS: u32 = 20_000;

    /// A program enqueues keys while the manager starts.
    #[test]
    fn a_key_that_is_queued_while_the_controller_starts_blocks_nothing() {
        let (tell, told) = mpsc::channel();
        let handles: Arc<Vec<_>> = Arc::new((0..ROUNDS).map(|_| ControllerHandle::<u32>::new()).collect());
        let barrier = Arc::new(Barrier::new(3));
        for _ in 0..2 {
            let (handles, barrier, tell) = (handles.clone(), barrier.clone(), tell.clone());
            thread::spawn(move || {
                for handle in handles.iter() {
                    barrier.wait();
                    handle.enqueue(1);
                }
                let _ = tell.send(0);
            });
        }
        thread::spawn(move || {
            let connect = |handle: &ControllerHandle<u32>| {
                barrier.wait();
                handle.link.connect(Weak::new()).len()
            };
            let _ = tell.send(handles.iter().map(connect).sum::<usize>());
        });
        for _ in 0..3 {
            let kept = told.recv_timeout(Duration::from_secs(300)).expect("no thread waits for another");
            assert!(kept <= 2 * ROUNDS as usize);
        }
    }
}
