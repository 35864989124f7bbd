//! Before a key is reconciled again, its caches have seen what it wrote.

use std::{hash::Hash, sync::Arc, time::Duration};

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::{context::Caches, metrics::OneController, read_your_writes::WriteRef};

/// The writes of the last reconcile of each key, until the caches of all clusters have seen them.
pub(crate) struct WriteBarrier<Q> {
    last: Mutex<Last<Q>>,
    limit: Duration,
}

struct Last<Q> {
    writes: HashMap<Q, Vec<WriteRef>, foldhash::fast::FixedState>,
    /// At this size, keys whose writes have been seen are swept out: a key need not be reconciled ever again.
    sweep_at: usize,
}

/// The least number of keys at which the map is swept.
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
        last.writes.insert(key, writes);
        if last.writes.len() >= last.sweep_at {
            let unseen = |write: &WriteRef| !caches.iter().all(|caches| caches.have_seen(write));
            last.writes.retain(|_, writes| writes.iter().any(unseen));
            last.sweep_at = SWEEP.max(last.writes.len() * 2);
        }
    }

    /// Waits until the caches have seen the last writes of a key. The wait is bounded; a timeout is logged and counted.
    pub(crate) async fn pass(&self, key: &Q, caches: &[Arc<Caches>], metrics: &OneController) {
        let Some(writes) = self.last.lock().writes.remove(key) else { return };
        let begun = Instant::now();
        let seen = timeout(self.limit, all_seen(&writes, caches)).await;
        metrics.barrier_waits.observe(begun.elapsed().as_secs_f64());
        if seen.is_err() {
            metrics.barrier_timeouts.inc();
            tracing::warn!(
                waited = ?self.limit,
                "the watches have not seen the writes of the last reconcile in time; reconciling all the same"
            );
        }
    }
}

async fn all_seen(writes: &[WriteRef], caches: &[Arc<Caches>]) {
    for write in writes {
        for caches in caches {
            caches.seen(write).await;
        }
    }
}
