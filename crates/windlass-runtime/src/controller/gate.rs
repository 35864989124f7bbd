//! Before a key is reconciled again, its caches see what it wrote.

use std::{hash::Hash, time::Duration};

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::{context::Caches, metrics::OneController, read_your_writes::WriteRef};

/// What the last reconcile of each key wrote, until the caches have seen it.
pub(crate) struct Gate<Q> {
    last: Mutex<Last<Q>>,
    limit: Duration,
}

struct Last<Q> {
    writes: HashMap<Q, Vec<WriteRef>, foldhash::fast::FixedState>,
    /// At this size those that were seen are swept out: a key need not ever come again.
    sweep_at: usize,
}

/// The least number of keys at which it is worth looking.
const SWEEP: usize = 256;

impl<Q: Eq + Hash> Gate<Q> {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { last: Mutex::new(Last { writes: HashMap::default(), sweep_at: SWEEP }), limit }
    }

    /// Remembers what a reconcile wrote.
    pub(crate) fn close(&self, key: Q, writes: Vec<WriteRef>, caches: &Caches) {
        if writes.is_empty() || self.limit.is_zero() {
            return;
        }
        let mut last = self.last.lock();
        last.writes.insert(key, writes);
        if last.writes.len() >= last.sweep_at {
            let unseen = |write: &WriteRef| {
                caches.find(&write.resource).is_some_and(|cache| !cache.writes.has_seen(write))
            };
            last.writes.retain(|_, writes| writes.iter().any(unseen));
            last.sweep_at = SWEEP.max(last.writes.len() * 2);
        }
    }

    /// Waits until the caches have seen the last writes of a key, or the limit is over, which is counted.
    pub(crate) async fn pass(&self, key: &Q, caches: &Caches, metrics: &OneController) {
        let Some(writes) = self.last.lock().writes.remove(key) else { return };
        let begun = Instant::now();
        let seen = timeout(self.limit, all_seen(&writes, caches)).await;
        metrics.gate_waits.observe(begun.elapsed().as_secs_f64());
        if seen.is_err() {
            metrics.gate_timeouts.inc();
            tracing::warn!(
                waited = ?self.limit,
                "the watches have not yet told of what the last reconcile wrote; reconciling all the same"
            );
        }
    }
}

async fn all_seen(writes: &[WriteRef], caches: &Caches) {
    for write in writes {
        // A kind that the controller does not read needs no waiting for.
        let Some(cache) = caches.find(&write.resource) else { continue };
        cache.has_seen(write).await;
    }
}
