//! The barrier before the next reconcile of a key: the caches must have seen the writes of the last
//! reconcile.

use std::{hash::Hash, sync::Arc, time::Duration};

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use windlass_workqueue::{AddOptions, Item};

use super::Running;
use crate::{context::Caches, handler::QueueKey, metrics::OneController, read_your_writes::WriteRef};

/// The writes of the last reconcile of each key, until the caches of all clusters have seen the writes.
pub(crate) struct WriteBarrier<Q> {
    last: Mutex<Last<Q>>,
    limit: Duration,
}

struct Last<Q> {
    writes: HashMap<Q, Unseen, foldhash::fast::FixedState>,
    /// The number of keys at which keys with seen writes are removed.
    sweep_at: usize,
}

/// The writes of a key.
enum Unseen {
    /// No reconcile waits for the writes.
    Remembered(Vec<WriteRef>),
    /// A task waits for the writes, and adds the key to the queue afterwards, with the highest priority that the key had meanwhile.
    Awaited(i32),
}

/// The passage of a key.
pub(crate) enum Passage {
    Open,
    /// The caches have not seen these writes.
    Closed(Vec<WriteRef>),
    /// A task waits already, and adds the key to the queue.
    Awaited,
}

/// The smallest number of keys at which the map is swept.
const SWEEP: usize = 256;

impl<Q: Eq + Hash> WriteBarrier<Q> {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { last: Mutex::new(Last { writes: HashMap::default(), sweep_at: SWEEP }), limit }
    }

    /// Remembers the writes of a reconcile.
    pub(crate) fn raise(&self, key: Q, writes: Vec<WriteRef>, caches: &[Arc<Caches>]) {
        if writes.is_empty() || self.limit.is_zero() {
            return;
        }
        let mut last = self.last.lock();
        last.writes.insert(key, Unseen::Remembered(writes));
        if last.writes.len() >= last.sweep_at {
            last.sweep(caches, self.limit);
        }
    }

    /// Forgets the keys with seen writes, and returns the number of remaining keys.
    pub(crate) fn sweep(&self, caches: &[Arc<Caches>]) -> usize {
        let mut last = self.last.lock();
        last.sweep(caches, self.limit);
        last.writes.len()
    }

    /// Returns whether a key may be reconciled. After [`Passage::Closed`], the caller [waits](Self::wait) for the writes.
    pub(crate) fn passage(&self, key: &Q, priority: i32, caches: &[Arc<Caches>]) -> Passage
    where
        Q: Clone,
    {
        let mut last = self.last.lock();
        match last.writes.remove(key) {
            None => Passage::Open,
            Some(Unseen::Remembered(writes)) if self.have_seen(&writes, caches) => Passage::Open,
            Some(Unseen::Remembered(writes)) => {
                last.writes.insert(key.clone(), Unseen::Awaited(priority));
                Passage::Closed(writes)
            }
            Some(Unseen::Awaited(before)) => {
                last.writes.insert(key.clone(), Unseen::Awaited(priority.max(before)));
                Passage::Awaited
            }
        }
    }

    fn have_seen(&self, writes: &[WriteRef], caches: &[Arc<Caches>]) -> bool {
        writes.iter().all(|write| caches.iter().all(|caches| caches.have_seen(write, self.limit)))
    }

    /// Waits until the caches have seen the writes. The wait is bounded; a timeout is logged and counted.
    async fn wait(&self, writes: &[WriteRef], caches: &[Arc<Caches>], metrics: &OneController) {
        let begun = Instant::now();
        let all_seen = async {
            for write in writes {
                for caches in caches {
                    caches.seen(write, self.limit).await;
                }
            }
        };
        let seen = timeout(self.limit, all_seen).await;
        metrics.barrier_waits.observe(begun.elapsed().as_secs_f64());
        if seen.is_err() {
            metrics.barrier_timeouts.inc();
            tracing::warn!(
                waited = ?self.limit,
                "the watches have not seen the writes of the last reconcile in time; reconciling all the same"
            );
        }
    }

    /// Opens the barrier, and returns the priority of the key.
    fn open(&self, key: &Q) -> Option<i32> {
        match self.last.lock().writes.remove(key) {
            Some(Unseen::Awaited(priority)) => Some(priority),
            _ => None,
        }
    }
}

impl<Q: Eq + Hash> Last<Q> {
    fn sweep(&mut self, caches: &[Arc<Caches>], limit: Duration) {
        let unseen = |write: &WriteRef| !caches.iter().all(|caches| caches.have_seen(write, limit));
        self.writes.retain(|_, writes| match writes {
            Unseen::Remembered(writes) => writes.iter().any(unseen),
            Unseen::Awaited(_) => true,
        });
        self.sweep_at = SWEEP.max(self.writes.len() * 2);
        self.writes.shrink_to(self.sweep_at);
    }
}

impl<Q: QueueKey> Running<Q> {
    /// Returns the item if the caches have seen the last writes of the key. Otherwise, a task puts the key
    /// back when the caches have seen the writes, and the worker is free for other keys.
    pub(super) fn pass_barrier(self: &Arc<Self>, item: Item<Q>) -> Option<Item<Q>> {
        let writes = match self.barrier.passage(item.key(), item.priority(), &self.caches) {
            Passage::Open => return Some(item),
            Passage::Closed(writes) => Some(writes),
            Passage::Awaited => None,
        };
        if let Some(writes) = writes {
            let awaited = AwaitedKey { running: self.clone(), key: item.key().clone() };
            let span = self.span(item.key());
            tokio::spawn(tracing::Instrument::instrument(
                async move {
                    let running = &awaited.running;
                    let waits = running.barrier.wait(&writes, &running.caches, &running.metrics);
                    running.ended().run_until_cancelled(waits).await;
                },
                span,
            ));
        }
        item.done();
        None
    }
}

/// A key with writes that a task waits for. Dropping the value, even by a panic, opens the barrier and adds
/// the key to the queue.
struct AwaitedKey<Q: QueueKey> {
    running: Arc<Running<Q>>,
    key: Q,
}

impl<Q: QueueKey> Drop for AwaitedKey<Q> {
    fn drop(&mut self) {
        let priority = self.running.barrier.open(&self.key).unwrap_or_default();
        self.running.queue.add_with(self.key.clone(), AddOptions::new().priority(priority));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event with a high priority arrives while a key of a low priority waits.
    #[test]
    fn an_awaited_key_returns_with_its_highest_priority() {
        let barrier = WriteBarrier::new(Duration::from_secs(1));
        barrier.last.lock().writes.insert("a", Unseen::Awaited(-100));
        assert!(matches!(barrier.passage(&"a", 0, &[]), Passage::Awaited));
        assert!(matches!(barrier.passage(&"a", -50, &[]), Passage::Awaited));
        assert_eq!(barrier.open(&"a"), Some(0));
    }
}
