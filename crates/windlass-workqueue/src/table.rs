//! Where keys become slots, and idle slots are given back.

use crate::Key;
use crate::slot::Place;
use crate::sync::{Arc, Mutex, Ordering, Padded, PlainU32, fence};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Shards, to keep adders of different keys out of each other's way.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

/// A shard is swept after this many slots went idle, or after half of what it holds did if that is more.
const SWEEP_AFTER: u32 = 64;

/// Every slot of a queue by its key.
///
/// A slot that went idle stays for a while, so that a key that comes back costs no allocation. Sweeps come in
/// proportion to the slots that went idle, so that they cost a constant for each, and what idles is never more than
/// about half of what is in use (and a few thousand).
pub(crate) struct Table<K> {
    hasher: RandomState,
    shards: Box<[Padded<Shard<K>>]>,
}

struct Shard<K> {
    slots: Mutex<HashTable<Arc<Place<K>>>>,
    /// Slots that came or went idle since the last sweep.
    churn: PlainU32,
    sweep_at: PlainU32,
}

impl<K: Key> Table<K> {
    pub(crate) fn new() -> Self {
        let shard = || {
            Padded(Shard {
                slots: Mutex::new(HashTable::new()),
                churn: PlainU32::new(0),
                sweep_at: PlainU32::new(SWEEP_AFTER),
            })
        };
        Self { hasher: RandomState::default(), shards: std::iter::repeat_with(shard).take(SHARDS).collect() }
    }

    fn shard(&self, hash: u64) -> &Shard<K> {
        // The table takes the hash's low and top bits; take others.
        &self.shards[(hash >> 24) as usize % SHARDS]
    }

    /// The slot of `key`, made if there is none.
    pub(crate) fn intern(&self, key: K) -> Arc<Place<K>> {
        let hash = self.hasher.hash_one(&key);
        let shard = self.shard(hash);
        let mut slots = shard.slots.lock();
        if let Some(place) = slots.find(hash, |place| place.key == key) {
            return Arc::clone(place);
        }
        if shard.churned() {
            shard.sweep(&mut slots);
        }
        let place = Arc::new(Place::new(key, hash));
        slots.insert_unique(hash, Arc::clone(&place), |place| place.hash);
        place
    }

    /// The slot of `key`, if there is one.
    pub(crate) fn find(&self, key: &K) -> Option<Arc<Place<K>>> {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).slots.lock().find(hash, |place| place.key == *key).map(Arc::clone)
    }

    /// Notes that a slot has gone idle.
    pub(crate) fn idled(&self, place: &Place<K>) {
        let shard = self.shard(place.hash);
        if shard.churned() {
            shard.sweep(&mut shard.slots.lock());
        }
    }

    /// Looks at every slot, a shard at a time, in no particular order.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&Place<K>)) {
        for shard in &self.shards {
            shard.slots.lock().iter().for_each(|place| look(place));
        }
    }

    /// How many slots there are, idle ones included.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.slots.lock().len()).sum()
    }
}

impl<K> Shard<K> {
    /// One more slot came or went idle: is it time to sweep?
    fn churned(&self) -> bool {
        self.churn.fetch_add(1, Ordering::Relaxed) >= self.sweep_at.load(Ordering::Relaxed)
    }

    fn sweep(&self, slots: &mut HashTable<Arc<Place<K>>>) {
        slots.retain(|place| !is_garbage(place));
        let half = u32::try_from(slots.len() / 2).unwrap_or(u32::MAX);
        self.sweep_at.store(half.max(SWEEP_AFTER), Ordering::Relaxed);
        self.churn.store(0, Ordering::Relaxed);
        if slots.capacity() > 4 * slots.len().max(SWEEP_AFTER as usize) {
            slots.shrink_to(2 * slots.len(), |place| place.hash);
        }
    }
}

/// Only the table knows the slot, and there is nothing to remember. Whoever could change that comes through the
/// table, whose lock the caller holds.
fn is_garbage<K>(place: &Arc<Place<K>>) -> bool {
    if Arc::strong_count(place) != 1 {
        return false;
    }
    // What the last holder wrote before it let go is to be seen.
    fence(Ordering::Acquire);
    place.is_idle() && place.failures() == 0
}
