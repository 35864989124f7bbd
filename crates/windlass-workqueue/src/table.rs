//! Where keys become slots, and idle slots are given back.

use crate::slot::Place;
use crate::sync::{Arc, Mutex, Ordering, Padded, PlainUsize, fence};
use crate::tick::Tick;
#[cfg(not(loom))]
use equivalent::Equivalent;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

/// Shards, to keep adders of different keys out of each other's way.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

/// A shard with no more slots than this lets them idle, so that keys that come back cost no allocation.
const SPARE: usize = 64;

/// Every slot of a queue by its key.
///
/// An idle slot is taken out as soon as the work on it is done, but for a few. Slots that somebody held at that moment
/// are found when their shard has grown, and slots whose failures were still remembered when these have expired: so
/// nothing stays behind, however many keys there ever were.
pub(crate) struct Table<K> {
    hasher: RandomState,
    shards: Box<[Padded<Shard<K>>]>,
    /// No shard is swept more often than this because of failures.
    sweep_interval: Duration,
}

struct Shard<K> {
    slots: Mutex<Slots<K>>,
    /// As many as `slots` holds, to be looked at without the lock.
    len: PlainUsize,
}

struct Slots<K> {
    by_key: HashTable<Arc<Place<K>>>,
    /// At this size the shard is swept.
    sweep_len: usize,
    /// At this time the shard is swept: failures have expired.
    sweep_time: Option<Tick>,
}

impl<K> Table<K> {
    pub(crate) fn new(sweep_interval: Duration) -> Self {
        let shards = std::iter::repeat_with(|| Padded(Shard::new())).take(SHARDS).collect();
        Self { hasher: RandomState::default(), shards, sweep_interval }
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
        if let Some(place) = slots.by_key.find(hash, |place| place.key == key) {
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
        if let Some(place) = slots.by_key.find(hash, |place| key.equivalent(&place.key)) {
            return Arc::clone(place);
        }
        shard.insert(&mut slots, Place::new(K::from(key), hash))
    }

    /// Looks at the slot of `key`, if there is one.
    pub(crate) fn look_up<T>(&self, key: &K, look: impl FnOnce(&Place<K>) -> T) -> Option<T>
    where
        K: Eq + Hash,
    {
        let hash = self.hasher.hash_one(key);
        let slots = self.shard(hash).slots.lock();
        slots.by_key.find(hash, |place| place.key == *key).map(|place| look(place))
    }

    /// Lets go of a slot that has gone idle.
    #[inline]
    pub(crate) fn release(&self, place: Arc<Place<K>>, now: Tick) {
        if self.shard(place.hash).len.load(Ordering::Relaxed) > SPARE {
            self.reclaim(place, now);
        }
    }

    fn reclaim(&self, place: Arc<Place<K>>, now: Tick) {
        let shard = self.shard(place.hash);
        let mut slots = shard.slots.lock();
        // The table's and the caller's.
        if is_garbage(&place, 2, now) {
            if let Ok(entry) = slots.by_key.find_entry(place.hash, |other| Arc::ptr_eq(other, &place)) {
                entry.remove();
            }
        } else if place.failures() > 0 {
            slots.sweep_time.get_or_insert(now + self.sweep_interval);
        }
        drop(place);
        slots.sweep_if_due(now, self.sweep_interval);
        shard.len.store(slots.by_key.len(), Ordering::Relaxed);
    }

    /// Looks at every slot, a shard at a time, in no particular order.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&Place<K>)) {
        for shard in &self.shards {
            shard.slots.lock().by_key.iter().for_each(|place| look(place));
        }
    }

    /// How many slots there are, idle ones included.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.slots.lock().by_key.len()).sum()
    }
}

impl<K> Shard<K> {
    fn new() -> Self {
        let slots = Slots { by_key: HashTable::new(), sweep_len: 2 * SPARE, sweep_time: None };
        Self { slots: Mutex::new(slots), len: PlainUsize::new(0) }
    }

    fn insert(&self, slots: &mut Slots<K>, place: Place<K>) -> Arc<Place<K>> {
        let place = Arc::new(place);
        slots.by_key.insert_unique(place.hash, Arc::clone(&place), |place| place.hash);
        self.len.store(slots.by_key.len(), Ordering::Relaxed);
        place
    }
}

impl<K> Slots<K> {
    /// Takes out all garbage if there is likely to be some, and gives back room that a burst has needed.
    fn sweep_if_due(&mut self, now: Tick, interval: Duration) {
        let grown = self.by_key.len() >= self.sweep_len;
        if grown || self.sweep_time.is_some_and(|time| time <= now) {
            let mut failures = false;
            self.by_key.retain(|place| {
                let keep = !is_garbage(place, 1, now);
                failures |= keep && place.failures() > 0;
                keep
            });
            self.sweep_time = failures.then(|| now + interval);
            self.sweep_len = (4 * self.by_key.len()).max(2 * SPARE);
        }
        if self.by_key.capacity() > 8 * self.by_key.len().max(SPARE) {
            let room = 2 * self.by_key.len();
            self.by_key.shrink_to(room, |place| place.hash);
            self.sweep_len = (4 * self.by_key.len()).max(2 * SPARE);
        }
    }
}

/// Nobody but `holders` knows the slot, and there is nothing to remember. Whoever could change that comes through the
/// table, whose lock the caller holds.
fn is_garbage<K>(place: &Arc<Place<K>>, holders: usize, now: Tick) -> bool {
    if Arc::strong_count(place) != holders {
        return false;
    }
    // What the last holder wrote before it let go is to be seen.
    fence(Ordering::Acquire);
    place.is_idle() && place.failures_at(now) == 0
}
