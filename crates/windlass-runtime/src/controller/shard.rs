//! The part of a sharded controller's keys that this replica works on.

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashSet;
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};
use windlass_cache::{ObjectKey, Store};
use windlass_workqueue::WorkQueue;

use super::{Running, remembered_keys::RememberedKeys};
use crate::{
    handler::QueueKey,
    sharding::{KeyCounts, KeyRight, OwnedKeys, Ownership, ShardGroup, ShardedController, hash},
    supervisor::Recovery,
};

/// The hash function that assigns keys to replicas.
pub(crate) type ShardHash<Q> = Arc<dyn Fn(&Q) -> u64 + Send + Sync>;

/// The keys of the objects in a store of the controller's own kind.
pub(crate) struct StoredKeys<Q> {
    /// Calls a function for the key of each object.
    pub(super) each: fn(&Store, &mut dyn FnMut(Q)),
    /// Returns whether a store has the object of a key.
    pub(super) has: fn(&Store, &Q) -> bool,
}

impl<Q> Clone for StoredKeys<Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q> Copy for StoredKeys<Q> {}

/// The sharding of a controller.
pub(super) struct Shard<Q> {
    group: ShardGroup,
    hash: ShardHash<Q>,
    stored: Option<StoredKeys<Q>>,
    deferred: Mutex<DeferredKeys<Q>>,
}

/// Keys that this replica may have to work on when other replicas leave, even if no cache has an object of the key.
struct DeferredKeys<Q> {
    /// Keys with work to do that wait for a hand-over.
    waiting: HashSet<Q, FixedState>,
    /// Keys with work to do that belonged to other replicas.
    foreign: RememberedKeys<Q>,
    /// Keys that this replica has worked on, and that have no object in a cache: keys of mappers, of sources and of the controller's handle.
    uncached: RememberedKeys<Q>,
    /// The number of forgotten keys at the last take-over.
    known_forgotten: u64,
}

/// How long keys of other replicas are remembered at least. A dead replica's keys move within this time.
const FOREIGN_TIME: Duration = Duration::from_mins(2);

impl<Q: QueueKey> Shard<Q> {
    pub(super) fn new(group: ShardGroup, hash: ShardHash<Q>, stored: Option<StoredKeys<Q>>) -> Self {
        let deferred = DeferredKeys {
            waiting: HashSet::default(),
            foreign: RememberedKeys::new(FOREIGN_TIME),
            uncached: RememberedKeys::new(Duration::ZERO),
            known_forgotten: 0,
        };
        Self { group, hash, stored, deferred: Mutex::new(deferred) }
    }

    /// Returns the right to work on a key; `None` if this replica may not. The key is remembered then.
    fn enter(&self, key: &Q) -> Option<KeyRight> {
        match self.group.enter((self.hash)(key)) {
            Ok(right) => Some(right),
            Err(ownership) => {
                let mut deferred = self.deferred.lock();
                if ownership == Ownership::Waiting {
                    deferred.waiting.insert(key.clone());
                } else {
                    deferred.foreign.remember(key.clone(), Instant::now());
                }
                drop(deferred);
                // This replica may own more keys by now, and the deferred keys may have been
                // queued.
                self.group.enter((self.hash)(key)).ok()
            }
        }
    }

    /// Remembers a key with a cancelled reconcile.
    pub(super) fn put_back(&self, key: Q, queue: &WorkQueue<Q>) {
        // The key may belong to this replica again in the meantime.
        if let Some(right) = self.enter(&key) {
            drop(right);
            queue.add(key);
        }
    }

    /// Remembers a key that this replica works on, and that has no object in a cache.
    fn remember_uncached(&self, key: &Q) {
        self.deferred.lock().uncached.remember(key.clone(), Instant::now());
    }

    /// Takes the remembered keys that this replica may work on now and could not before.
    fn take(&self, before: &OwnedKeys, now: &OwnedKeys) -> Vec<Q> {
        let ownership = |key: &Q| now.ownership((self.hash)(key));
        let mut deferred = self.deferred.lock();
        // The hash is a user's function and may panic: no key is removed before all verdicts are known.
        let decided: Vec<(Q, Ownership)> =
            deferred.waiting.iter().map(|key| (key.clone(), ownership(key))).collect();
        let foreign: Vec<Q> =
            deferred.foreign.iter().filter(|key| ownership(key) == Ownership::Own).cloned().collect();
        let gained = |key: &&Q| {
            ownership(key) == Ownership::Own && before.ownership((self.hash)(key)) != Ownership::Own
        };
        let uncached: Vec<Q> = deferred.uncached.iter().filter(gained).cloned().collect();
        deferred.foreign.remove(&foreign);
        let mut keys = foreign;
        keys.extend(uncached);
        for (key, ownership) in decided.into_iter().filter(|(_, ownership)| *ownership != Ownership::Waiting)
        {
            deferred.waiting.remove(&key);
            match ownership {
                Ownership::Own => keys.push(key),
                // A waiting key may now belong to another replica.
                _ => deferred.foreign.remember(key, Instant::now()),
            }
        }
        drop(deferred);
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns whether keys have been forgotten since the last call.
    fn has_forgotten(&self) -> bool {
        let mut deferred = self.deferred.lock();
        let forgotten = deferred.foreign.forgotten() + deferred.uncached.forgotten();
        std::mem::replace(&mut deferred.known_forgotten, forgotten) != forgotten
    }
}

/// The number of keys that are compared before other tasks run.
const BATCH: usize = 1000;

impl<Q: QueueKey> Running<Q> {
    /// Makes this replica a member of the group when all sharded controllers have filled the caches.
    pub(super) fn join_group(self: &Arc<Self>) {
        if let Some(shard) = self.shard() {
            shard.group.add(self);
        }
    }

    /// Returns the right to work on a key; `None` if this replica may not work on the key.
    pub(super) fn enter(&self, shard: &Shard<Q>, key: &Q) -> Option<KeyRight> {
        let right = shard.enter(key)?;
        let is_cached = shard
            .stored
            .zip(self.primary_stores())
            .is_some_and(|(stored, stores)| stores.iter().any(|store| (stored.has)(store, key)));
        if !is_cached {
            shard.remember_uncached(key);
        }
        Some(right)
    }

    /// Returns the keys of the objects of the controller's own kind, in all clusters; `None` without an own
    /// kind.
    fn cached_keys(&self, shard: &Shard<Q>) -> Option<Vec<Q>> {
        let (stored, stores) = (shard.stored?, self.primary_stores()?);
        let mut keys = Vec::with_capacity(stores.iter().map(Store::len).sum());
        stores.iter().for_each(|store| (stored.each)(store, &mut |key| keys.push(key)));
        Some(keys)
    }

    /// Queues the keys that this replica may work on now and could not before.
    async fn queue_gained(&self, before: &OwnedKeys, now: &OwnedKeys) {
        let Some(shard) = self.shard() else { return };
        shard.take(before, now).into_iter().for_each(|key| self.queue.add(key));
        let has_forgotten = shard.has_forgotten();
        let Some(keys) = self.cached_keys(shard) else {
            // Without an own kind, only the handlers know the keys.
            self.renew_watches(|_| true);
            return;
        };
        let mut gained = 0_usize;
        for batch in keys.chunks(BATCH) {
            for key in batch {
                let hash = (shard.hash)(key);
                if now.ownership(hash) == Ownership::Own && before.ownership(hash) != Ownership::Own {
                    self.queue.add(key.clone());
                    gained += 1;
                }
            }
            tokio::task::yield_now().await;
        }
        tracing::info!(controller = self.name, keys = gained, members = now.members(), "took over keys");
        if has_forgotten {
            // The handlers of other kinds know keys of objects that are in no cache.
            let primary = self.primary.as_ref().map(|primary| &primary.resource);
            self.renew_watches(|resource| Some(resource) != primary);
        }
    }
}

impl<Q: QueueKey> ShardedController for Running<Q> {
    fn take_over(self: Arc<Self>, before: &Arc<OwnedKeys>, now: &Arc<OwnedKeys>) {
        let (before, now) = (before.clone(), now.clone());
        let task = format!("take-over of keys of controller {}", self.name);
        let (supervisor, stopping) = (self.supervisor(), self.stopping());
        let take_over = move |recovery: Recovery| {
            let (this, before, now) = (self.clone(), before.clone(), now.clone());
            async move {
                this.queue_gained(&before, &now).await;
                recovery.complete();
            }
        };
        tokio::spawn(supervisor.supervise(task, stopping, take_over));
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn count(&self, owned_keys: &OwnedKeys) -> KeyCounts {
        let Some(shard) = self.shard() else { return KeyCounts::default() };
        let own = |key: &Q| owned_keys.ownership((shard.hash)(key)) == Ownership::Own;
        let owned = self.cached_keys(shard).unwrap_or_default().iter().filter(|key| own(key)).count();
        let deferred = shard.deferred.lock();
        let forgotten = deferred.foreign.forgotten() + deferred.uncached.forgotten();
        KeyCounts { owned, waiting: deferred.waiting.len(), forgotten }
    }
}

/// Returns the hash of a key's text. The hash is the same on every replica.
pub(super) fn hash_of_text<Q: QueueKey>() -> ShardHash<Q> {
    Arc::new(|key| hash(&key.to_string()))
}

/// The keys of objects.
pub(super) const OBJECT_KEYS: StoredKeys<ObjectKey> = StoredKeys {
    each: |store, visit| {
        for object in store.list() {
            visit(ObjectKey::new(object.namespace(), object.name()));
        }
    },
    has: |store, key| store.get(key).is_some(),
};
