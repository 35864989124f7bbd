//! The barrier before the next reconcile of a key: the caches must have seen the writes of the last
//! reconcile.

use std::sync::Arc;

use tokio::time::{Instant, timeout};
use windlass_workqueue::{AddOptions, Item};

use super::Running;
use crate::{
    handler::QueueKey,
    read_your_writes::{Hold, Passage, WriteRef},
};

impl<Q: QueueKey> Running<Q> {
    /// Returns true if the key of an item may be reconciled now. A key in a hot loop is put back. If the caches have not seen the last writes of
    /// the key, a task puts the key back when the caches have, and the worker is free for other keys.
    pub(super) fn pass(self: &Arc<Self>, item: &Item<Q>) -> bool {
        let has_seen = |write: &WriteRef| self.has_seen(write);
        match self.journal.passage(item.key(), item.priority(), Instant::now(), has_seen) {
            Passage::Open => return true,
            Passage::Hold(hold) => self.hold(item, &hold),
            Passage::Closed(writes) => {
                if let Some(unseen) = writes.iter().find(|write| !self.has_seen(write)) {
                    self.metrics.stale_syncs.count(&unseen.resource);
                }
                self.await_writes(item.key().clone(), writes);
            }
            Passage::Awaited => {}
        }
        false
    }

    fn hold(&self, item: &Item<Q>, hold: &Hold) {
        if hold.report {
            self.metrics.hot_loops.inc();
            tracing::warn!(
                controller = self.name,
                key = %item.key(),
                wait = ?hold.wait,
                "reconciled more than 20 times in 10 s, each time with a write; slowed down to twice a second. \
                 Does the reconciler react to its own writes? (`Controller::allow_hot_loops` turns this off)"
            );
        }
        item.requeue(AddOptions::new().after(hold.wait).priority(item.priority()));
    }

    /// Puts a key back when the caches have seen the writes, or the controller ends.
    fn await_writes(self: &Arc<Self>, key: Q, writes: Vec<WriteRef>) {
        // First the guard: a panic in the key's `Display` puts the key back.
        let awaited = AwaitedKey { running: self.clone(), key };
        let span = self.span(&awaited.key);
        let wait = async move {
            let running = &awaited.running;
            running.ended().run_until_cancelled(running.see(&writes)).await;
        };
        tokio::spawn(tracing::Instrument::instrument(wait, span));
    }

    /// Whether the caches of all clusters have seen a write.
    pub(super) fn has_seen(&self, write: &WriteRef) -> bool {
        let limit = self.journal.longest_wait();
        self.caches.iter().all(|caches| caches.have_seen(write, limit))
    }

    /// Waits until the caches have seen the writes. The wait is bounded; a timeout is logged and counted.
    async fn see(&self, writes: &[WriteRef]) {
        let (begun, limit) = (Instant::now(), self.journal.longest_wait());
        let all_seen = async {
            for write in writes {
                for caches in &self.caches {
                    caches.seen(write, limit).await;
                }
            }
        };
        let seen = timeout(limit, all_seen).await;
        let (waited, waits) = (begun.elapsed().as_secs_f64(), &self.metrics.consistency_waits);
        self.metrics.barrier_waits.observe(waited);
        if seen.is_ok() { &waits.success } else { &waits.timeout }.observe(waited);
        if seen.is_err() {
            self.metrics.barrier_timeouts.inc();
            tracing::warn!(
                waited = ?limit,
                "the watches have not seen the writes of the last reconcile in time; reconciling all the same"
            );
        }
    }
}

/// A key whose writes a task waits for. Dropping the `AwaitedKey`, by a panic too, opens the passage and adds the key to the queue.
struct AwaitedKey<Q: QueueKey> {
    running: Arc<Running<Q>>,
    key: Q,
}

impl<Q: QueueKey> Drop for AwaitedKey<Q> {
    fn drop(&mut self) {
        let priority = self.running.journal.open(&self.key).unwrap_or_default();
        self.running.queue.add_with(self.key.clone(), AddOptions::new().priority(priority));
    }
}
