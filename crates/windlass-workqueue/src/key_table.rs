//! The states of all keys, and the reclamation of states.

use crate::key_state::KeyState;
use crate::sync::{Arc, Mutex, Ordering, Padded, PlainUsize, fence};
use crate::timestamp::Timestamp;
#[cfg(not(loom))]
use equivalent::Equivalent;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

/// The number of shards. With many shards, adders of different keys rarely contend for a lock.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

/// The number of states of idle keys that a shard keeps. A key that comes back needs no allocation.
const IDLE_KEYS: usize = 64;

/// The states of all keys of a queue.
///
/// When a worker is done with a key, the state is removed unless the shard is small. A state that another
/// thread holds at that moment is removed by a sweep once the shard has grown; a state with failures, by a
/// sweep after the failures have expired. The table therefore does not grow with the number of keys ever
/// added.
pub(crate) struct KeyTable<K> {
    hasher: RandomState,
    shards: Box<[Padded<Shard<K>>]>,
    /// The least time between two sweeps of a shard for expired failures.
    sweep_interval: Duration,
}

struct Shard<K> {
    states: Mutex<States<K>>,
    /// The number of states, readable without the lock.
    len: PlainUsize,
}

struct States<K> {
    by_key: HashTable<Arc<KeyState<K>>>,
    /// The number of states at which the shard is swept.
    sweep_len: usize,
    /// When the shard is swept because failures expire.
    sweep_time: Option<Timestamp>,
}

impl<K> KeyTable<K> {
    pub(crate) fn new(sweep_interval: Duration) -> Self {
        let shards = std::iter::repeat_with(|| Padded(Shard::new())).take(SHARDS).collect();
        Self { hasher: RandomState::default(), shards, sweep_interval }
    }

    fn shard(&self, hash: u64) -> &Shard<K> {
        // The hash table uses the low and the top bits of the hash; the shard uses other bits.
        &self.shards[(hash >> 24) as usize % SHARDS]
    }

    /// Returns the state of `key`. Inserts an idle state for an unknown key.
    pub(crate) fn get_or_insert(&self, key: K) -> Arc<KeyState<K>>
    where
        K: Eq + Hash,
    {
        let hash = self.hasher.hash_one(&key);
        let shard = self.shard(hash);
        let mut states = shard.states.lock();
        if let Some(state) = states.by_key.find(hash, |state| state.key == key) {
            return Arc::clone(state);
        }
        shard.insert(&mut states, KeyState::new(key, hash))
    }

    /// Returns the state of the key that `key` equals. Converts `key` and inserts an idle state only if the key is
    /// unknown.
    #[cfg(not(loom))]
    pub(crate) fn get_or_insert_ref<Q>(&self, key: &Q) -> Arc<KeyState<K>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: for<'q> From<&'q Q>,
    {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash);
        let mut states = shard.states.lock();
        if let Some(state) = states.by_key.find(hash, |state| key.equivalent(&state.key)) {
            return Arc::clone(state);
        }
        shard.insert(&mut states, KeyState::new(K::from(key), hash))
    }

    /// Calls `inspect` with the state of `key`, if the key is known.
    pub(crate) fn inspect<T>(&self, key: &K, inspect: impl FnOnce(&KeyState<K>) -> T) -> Option<T>
    where
        K: Eq + Hash,
    {
        let hash = self.hasher.hash_one(key);
        let states = self.shard(hash).states.lock();
        states.by_key.find(hash, |state| state.key == *key).map(|state| inspect(state))
    }

    /// Calls `inspect` with the state of every key, one shard at a time, in no particular order.
    pub(crate) fn inspect_all(&self, mut inspect: impl FnMut(&KeyState<K>)) {
        for shard in &self.shards {
            shard.states.lock().by_key.iter().for_each(|state| inspect(state));
        }
    }

    /// Removes the state of a key that has become idle, unless the shard is small.
    #[inline]
    pub(crate) fn release(&self, state: Arc<KeyState<K>>, now: Timestamp) {
        if self.shard(state.hash).len.load(Ordering::Relaxed) > IDLE_KEYS {
            self.reclaim(state, now);
        }
    }

    fn reclaim(&self, state: Arc<KeyState<K>>, now: Timestamp) {
        let shard = self.shard(state.hash);
        let mut states = shard.states.lock();
        // Two references: the table's and the caller's.
        if is_garbage(&state, 2, now) {
            if let Ok(entry) = states.by_key.find_entry(state.hash, |other| Arc::ptr_eq(other, &state)) {
                entry.remove();
            }
        } else if state.failures() > 0 {
            states.sweep_time.get_or_insert(now + self.sweep_interval);
        }
        drop(state);
        states.sweep_if_due(now, self.sweep_interval);
        states.shrink_if_sparse();
        shard.len.store(states.by_key.len(), Ordering::Relaxed);
    }

    /// Returns the number of known keys, including idle keys.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.states.lock().by_key.len()).sum()
    }
}

impl<K> Shard<K> {
    fn new() -> Self {
        let states = States { by_key: HashTable::new(), sweep_len: 2 * IDLE_KEYS, sweep_time: None };
        Self { states: Mutex::new(states), len: PlainUsize::new(0) }
    }

    fn insert(&self, states: &mut States<K>, state: KeyState<K>) -> Arc<KeyState<K>> {
        let state = Arc::new(state);
        states.by_key.insert_unique(state.hash, Arc::clone(&state), |state| state.hash);
        self.len.store(states.by_key.len(), Ordering::Relaxed);
        state
    }
}

impl<K> States<K> {
    fn sweep_if_due(&mut self, now: Timestamp, interval: Duration) {
        let grown = self.by_key.len() >= self.sweep_len;
        if !grown && self.sweep_time.is_none_or(|time| time > now) {
            return;
        }
        let mut failures_left = false;
        self.by_key.retain(|state| {
            let keep = !is_garbage(state, 1, now);
            failures_left |= keep && state.failures() > 0;
            keep
        });
        self.sweep_time = failures_left.then(|| now + interval);
        self.set_sweep_len();
    }

    fn shrink_if_sparse(&mut self) {
        if self.by_key.capacity() > 8 * self.by_key.len().max(IDLE_KEYS) {
            let capacity = 2 * self.by_key.len();
            self.by_key.shrink_to(capacity, |state| state.hash);
            self.set_sweep_len();
        }
    }

    fn set_sweep_len(&mut self) {
        self.sweep_len = (4 * self.by_key.len()).max(2 * IDLE_KEYS);
    }
}

/// Returns whether a state can be removed: there are no references but `holders`, the key is idle, and there
/// are no failures to remember. The caller holds the shard's lock, so that no thread can add a reference.
fn is_garbage<K>(state: &Arc<KeyState<K>>, holders: usize, now: Timestamp) -> bool {
    if Arc::strong_count(state) != holders {
        return false;
    }
    // Pairs with the release of the last dropped reference. The owner of that reference may have changed the
    // state.
    fence(Ordering::Acquire);
    state.is_idle() && state.failures_at(now) == 0
}
