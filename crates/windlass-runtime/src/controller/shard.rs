//! The part of a sharded controller's keys that this replica works on.

use std::{collections::VecDeque, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};
use windlass_cache::{ObjectKey, Store};
use windlass_workqueue::WorkQueue;

use super::Running;
use crate::{
    handler::QueueKey,
    sharding::{Gate, KeyCounts, Permit, Rights, ShardedController, Verdict, hash},
};

/// Returns the hash by which a key is assigned to a replica.
pub(crate) type ShardHash<Q> = Arc<dyn Fn(&Q) -> u64 + Send + Sync>;

/// Calls a function for the key of each object of the controller's own kind.
pub(crate) type EachKey<Q> = fn(&Store, &mut dyn FnMut(Q));

/// The sharding of one controller.
pub(super) struct Shard<Q> {
    gate: Gate,
    hash: ShardHash<Q>,
    each_key: Option<EachKey<Q>>,
    aside: Mutex<Aside<Q>>,
}

/// Keys that had work to do and were another replica's. When they become this replica's, they are queued even if their object is gone from
/// the cache.
struct Aside<Q> {
    waiting: HashSet<Q, foldhash::fast::FixedState>,
    /// The keys of other replicas, each with the time at which it was put here.
    foreign: HashMap<Q, Instant, foldhash::fast::FixedState>,
    /// The keys of `foreign`, roughly the oldest first.
    oldest: VecDeque<Q>,
}

/// How long and how many keys of other replicas are remembered. A dead replica's keys move within this time.
const FOREIGN_TIME: Duration = Duration::from_mins(2);
const FOREIGN_KEYS: usize = 10_000;
/// So many of the oldest keys are looked at for each further key when as many keys as possible are remembered.
const LOOKS: usize = 16;

impl<Q: QueueKey> Shard<Q> {
    pub(super) fn new(gate: Gate, hash: ShardHash<Q>, each_key: Option<EachKey<Q>>) -> Self {
        let aside =
            Aside { waiting: HashSet::default(), foreign: HashMap::default(), oldest: VecDeque::new() };
        Self { gate, hash, each_key, aside: Mutex::new(aside) }
    }

    /// Returns the right to work on a key; `None` if this replica may not. The key is remembered then.
    pub(super) fn enter(&self, key: &Q) -> Option<Permit> {
        match self.gate.enter((self.hash)(key)) {
            Ok(permit) => Some(permit),
            Err(verdict) => {
                let mut aside = self.aside.lock();
                if verdict == Verdict::Waiting {
                    aside.waiting.insert(key.clone());
                } else {
                    aside.remember(key.clone());
                }
                drop(aside);
                // The rights may have grown in between, and with them the keys that were put aside been queued.
                self.gate.enter((self.hash)(key)).ok()
            }
        }
    }

    /// Remembers a key whose reconcile was cancelled.
    pub(super) fn put_back(&self, key: Q, queue: &WorkQueue<Q>) {
        // It may have become this replica's again in between.
        if let Some(permit) = self.enter(&key) {
            drop(permit);
            queue.add(key);
        }
    }

    /// Takes the keys that this replica may work on now.
    fn take(&self, rights: &Rights) -> Vec<Q> {
        let own = |key: &Q| rights.verdict((self.hash)(key)) == Verdict::Own;
        let mut aside = self.aside.lock();
        let mut keys: Vec<Q> = aside.waiting.extract_if(|key| own(key)).collect();
        keys.extend(aside.foreign.extract_if(|key, _| own(key)).map(|(key, _)| key));
        // A key that waited may have become another replica's.
        let moved: Vec<Q> =
            aside.waiting.extract_if(|key| rights.verdict((self.hash)(key)) == Verdict::Foreign).collect();
        moved.into_iter().for_each(|key| aside.remember(key));
        let Aside { foreign, oldest, .. } = &mut *aside;
        oldest.retain(|key| foreign.contains_key(key));
        drop(aside);
        keys.sort_unstable();
        keys
    }
}

impl<Q: QueueKey> Aside<Q> {
    fn remember(&mut self, key: Q) {
        let now = Instant::now();
        if let Some(since) = self.foreign.get_mut(&key) {
            *since = now;
            return;
        }
        if self.foreign.len() >= FOREIGN_KEYS {
            self.forget(now);
        }
        if self.foreign.len() < FOREIGN_KEYS {
            self.oldest.push_back(key.clone());
            self.foreign.insert(key, now);
        }
    }

    /// Forgets some expired keys. The work does not depend on the number of remembered keys.
    fn forget(&mut self, now: Instant) {
        for _ in 0..LOOKS {
            let Some(key) = self.oldest.pop_front() else { return };
            match self.foreign.get(&key) {
                Some(since) if now < *since + FOREIGN_TIME => self.oldest.push_back(key),
                _ => drop(self.foreign.remove(&key)),
            }
        }
    }
}

/// So many keys are compared between two pauses for other tasks.
const BATCH: usize = 1000;

impl<Q: QueueKey> Running<Q> {
    /// Makes this replica a member of the group as soon as all sharded controllers have filled their caches.
    pub(super) fn join_group(self: &Arc<Self>) {
        if let Some(shard) = self.shard() {
            shard.gate.add(self);
        }
    }

    /// The keys of the objects of the controller's own kind, in all clusters; `None` if it has no kind.
    fn cached_keys(&self, shard: &Shard<Q>) -> Option<Vec<Q>> {
        let (each_key, stores) = (shard.each_key?, self.primary_stores()?);
        let mut keys = Vec::with_capacity(stores.iter().map(Store::len).sum());
        stores.iter().for_each(|store| each_key(store, &mut |key| keys.push(key)));
        Some(keys)
    }

    async fn queue_gained(self: Arc<Self>, before: Arc<Rights>, now: Arc<Rights>) {
        let Some(shard) = self.shard() else { return };
        shard.take(&now).into_iter().for_each(|key| self.queue.add(key));
        let Some(keys) = self.cached_keys(shard) else {
            // Without a kind of its own, the keys are known to the handlers only.
            self.resync();
            return;
        };
        let mut gained = 0_usize;
        for batch in keys.chunks(BATCH) {
            for key in batch {
                let hash = (shard.hash)(key);
                if now.verdict(hash) == Verdict::Own && before.verdict(hash) != Verdict::Own {
                    self.queue.add(key.clone());
                    gained += 1;
                }
            }
            tokio::task::yield_now().await;
        }
        tracing::info!(controller = self.name, keys = gained, members = now.members(), "took over keys");
    }
}

impl<Q: QueueKey> ShardedController for Running<Q> {
    fn take_over(self: Arc<Self>, before: &Arc<Rights>, now: &Arc<Rights>) {
        let (before, now) = (before.clone(), now.clone());
        tokio::spawn(async move {
            let taken = AssertUnwindSafe(self.clone().queue_gained(before, now)).catch_unwind();
            if taken.await.is_err() {
                self.supervisor().count_panic("take-over of keys");
                self.resync();
            }
        });
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn count(&self, rights: &Rights) -> KeyCounts {
        let Some(shard) = self.shard() else { return KeyCounts::default() };
        let own = |key: &Q| rights.verdict((shard.hash)(key)) == Verdict::Own;
        let owned = self.cached_keys(shard).unwrap_or_default().iter().filter(|key| own(key)).count();
        KeyCounts { owned, waiting: shard.aside.lock().waiting.len() }
    }
}

/// The hash of a key's text, which is the same on every replica.
pub(super) fn hash_of_text<Q: QueueKey>() -> ShardHash<Q> {
    Arc::new(|key| hash(&key.to_string()))
}

/// Calls a function for the key of each object in a store.
pub(super) fn each_object_key(store: &Store, visit: &mut dyn FnMut(ObjectKey)) {
    for object in store.list() {
        visit(ObjectKey::new(object.namespace(), object.name()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At a start, each key belongs to another replica.
    #[tokio::test(start_paused = true)]
    async fn remembering_a_foreign_key_costs_the_same_however_many_are_remembered() {
        let mut aside =
            Aside { waiting: HashSet::default(), foreign: HashMap::default(), oldest: VecDeque::new() };
        for key in 0..100_000_u32 {
            aside.remember(key);
        }
        assert_eq!((aside.foreign.len(), aside.oldest.len()), (FOREIGN_KEYS, FOREIGN_KEYS));
        tokio::time::advance(FOREIGN_TIME / 2).await;
        aside.remember(1);
        tokio::time::advance(FOREIGN_TIME / 2).await;
        for key in 200_000..210_000 {
            aside.remember(key);
        }
        assert!(aside.foreign.contains_key(&1), "remembered again in between");
        assert!(aside.foreign.contains_key(&209_000) && !aside.foreign.contains_key(&2));
    }
}
