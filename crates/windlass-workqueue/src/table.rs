//! Where keys become slots, and idle slots are given back.

use crate::slot::Place;
use crate::sync::{Arc, Mutex, Ordering, Padded, PlainUsize, fence};
#[cfg(not(loom))]
use equivalent::Equivalent;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};

/// Shards, to keep adders of different keys out of each other's way.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

/// A shard with no more slots than this lets them idle, so that keys that come back cost no allocation.
const SPARE: usize = 64;

/// Every slot of a queue by its key.
///
/// An idle slot is taken out as soon as the work on it is done, but for a few. Slots that somebody held at that moment
/// are found when their shard has grown: so nothing stays behind, however many keys there ever were.
pub(crate) struct Table<K> {
    hasher: RandomState,
    shards: Box<[Padded<Shard<K>>]>,
}

struct Shard<K> {
    slots: Mutex<HashTable<Arc<Place<K>>>>,
    /// As many as `slots` holds, to be looked at without the lock.
    len: PlainUsize,
    /// At this size the shard is swept before it grows.
    sweep_at: PlainUsize,
}

impl<K> Table<K> {
    pub(crate) fn new() -> Self {
        let shard = || {
            Padded(Shard {
                slots: Mutex::new(HashTable::new()),
                len: PlainUsize::new(0),
                sweep_at: PlainUsize::new(2 * SPARE),
            })
        };
        Self { hasher: RandomState::default(), shards: std::iter::repeat_with(shard).take(SHARDS).collect() }
    }

    fn shard(&self, hash: u64) -> &Shard<K> {
        // The table takes the hash's low and top bits; take others.
        &self.shards[(hash >> 24) as usize % SHARDS]
    }

    /// The slot of `key`, made if there is none.
    pub(crate) fn intern(&self, key: K) -> Arc<Place<K>>
    where
        K: Eq + Hash,
    {
        let hash = self.hasher.hash_one(&key);
        let shard = self.shard(hash);
        let mut slots = shard.slots.lock();
        if let Some(place) = slots.find(hash, |place| place.key == key) {
            return Arc::clone(place);
        }
        shard.insert(&mut slots, Place::new(key, hash))
    }

    /// The slot of the key that `key` equals. The key is made only if there is no slot.
    #[cfg(not(loom))]
    pub(crate) fn intern_ref<Q>(&self, key: &Q) -> Arc<Place<K>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: for<'q> From<&'q Q>,
    {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash);
        let mut slots = shard.slots.lock();
        if let Some(place) = slots.find(hash, |place| key.equivalent(&place.key)) {
            return Arc::clone(place);
        }
        shard.insert(&mut slots, Place::new(K::from(key), hash))
    }

    /// The slot of `key`, if there is one.
    pub(crate) fn find(&self, key: &K) -> Option<Arc<Place<K>>>
    where
        K: Eq + Hash,
    {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).slots.lock().find(hash, |place| place.key == *key).map(Arc::clone)
    }

    /// Lets go of a slot that has gone idle.
    #[inline]
    pub(crate) fn release(&self, place: Arc<Place<K>>) {
        if self.shard(place.hash).len.load(Ordering::Relaxed) > SPARE {
            self.reclaim(place);
        }
    }

    fn reclaim(&self, place: Arc<Place<K>>) {
        let shard = self.shard(place.hash);
        let mut slots = shard.slots.lock();
        // The table's and the caller's.
        if !is_garbage(&place, 2) {
            return;
        }
        if let Ok(entry) = slots.find_entry(place.hash, |other| Arc::ptr_eq(other, &place)) {
            entry.remove();
        }
        shard.len.store(slots.len(), Ordering::Relaxed);
        if slots.capacity() > 8 * slots.len().max(SPARE) {
            let room = 2 * slots.len();
            slots.shrink_to(room, |place| place.hash);
            shard.sweep_at.store((4 * slots.len()).max(2 * SPARE), Ordering::Relaxed);
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
    fn insert(&self, slots: &mut HashTable<Arc<Place<K>>>, place: Place<K>) -> Arc<Place<K>> {
        if slots.len() >= self.sweep_at.load(Ordering::Relaxed) {
            self.sweep(slots);
        }
        let place = Arc::new(place);
        slots.insert_unique(place.hash, Arc::clone(&place), |place| place.hash);
        self.len.store(slots.len(), Ordering::Relaxed);
        place
    }

    fn sweep(&self, slots: &mut HashTable<Arc<Place<K>>>) {
        slots.retain(|place| !is_garbage(place, 1));
        self.sweep_at.store((4 * slots.len()).max(2 * SPARE), Ordering::Relaxed);
    }
}

/// Nobody but `holders` knows the slot, and there is nothing to remember. Whoever could change that comes through the
/// table, whose lock the caller holds.
fn is_garbage<K>(place: &Arc<Place<K>>, holders: usize) -> bool {
    if Arc::strong_count(place) != holders {
        return false;
    }
    // What the last holder wrote before it let go is to be seen.
    fence(Ordering::Acquire);
    place.is_idle() && place.failures() == 0
}
