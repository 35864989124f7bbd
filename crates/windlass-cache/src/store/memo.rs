//! Remembers decoded objects.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hashbrown::HashMap;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::{Slot, StoreInner};
use crate::{DecodeError, ObjectKey, RawObject};

/// The memos of a store, with a memo for each decoded type.
pub(crate) struct Memos {
    budget: usize,
    /// The estimated bytes of the decoded objects of all types.
    bytes: Arc<AtomicUsize>,
    by_type: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Memos {
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, bytes: Arc::default(), by_type: Mutex::default() }
    }

    pub(crate) fn of<K: Send + Sync + 'static>(&self) -> Arc<Memo<K>> {
        let mut by_type = self.by_type.lock();
        let new = || Arc::new(Memo::<K>::new(self.budget, self.bytes.clone()));
        let memo = by_type.entry(TypeId::of::<K>()).or_insert_with(|| new());
        // Cannot fail: the entry of a type holds a memo of that type.
        memo.clone().downcast().unwrap_or_else(|_| new())
    }

    /// Estimates the bytes of all decoded objects.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Memos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memos").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// Decodes the objects of a store as `K`, and remembers decoded objects. Cheap to clone.
pub struct Decoder<K> {
    store: Arc<StoreInner>,
    memo: Arc<Memo<K>>,
}

impl<K> Decoder<K> {
    pub(crate) fn new(store: Arc<StoreInner>, memo: Arc<Memo<K>>) -> Self {
        Self { store, memo }
    }
}

impl<K> Decoder<K> {
    /// Returns the object under a key if the object was decoded before and is remembered: a single look-up in the store.
    pub fn remembered(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.store.with_object(key, |slot, object| self.memo.0.lock().get(slot, object))?
    }
}

impl<K: DeserializeOwned> Decoder<K> {
    /// Decodes an object, or returns the remembered result. Objects outside of the store are not remembered.
    ///
    /// # Errors
    /// The object is not a `K`.
    pub fn decode(&self, object: &RawObject) -> Result<Arc<K>, DecodeError> {
        let Some(slot) = self.store.slot_of(object) else { return object.decode() };
        if let Some(decoded) = self.memo.0.lock().get(slot, object) {
            return Ok(decoded);
        }
        let (decoded, cost) = decode(object)?;
        self.memo.0.lock().insert(slot, Entry::new(object, &decoded, cost), true);
        Ok(decoded)
    }

    /// Decodes all objects of the store, and passes the objects that are not a `K` to `failed`. Remembers as many objects as there is
    /// room for, and evicts none.
    pub fn all(&self, mut failed: impl FnMut(&RawObject, DecodeError)) -> Vec<Arc<K>> {
        let (mut all, mut missing) = (Vec::new(), Vec::new());
        self.store.each_slot(|objects| {
            let mut entries = self.memo.0.lock();
            all.reserve(objects.size_hint().1.unwrap_or_default());
            for (slot, object) in objects {
                let decoded = entries.get(slot, object);
                if decoded.is_none() {
                    missing.push((all.len(), slot, object.clone()));
                }
                all.push(decoded);
            }
        });
        for (place, slot, object) in missing {
            match decode(&object) {
                Ok((decoded, cost)) => {
                    self.memo.0.lock().insert(slot, Entry::new(&object, &decoded, cost), false);
                    all[place] = Some(decoded);
                }
                Err(error) => failed(&object, error),
            }
        }
        all.into_iter().flatten().collect()
    }
}

impl<K> Clone for Decoder<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), memo: self.memo.clone() }
    }
}

impl<K> fmt::Debug for Decoder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

/// The decoded objects of a type.
pub(crate) struct Memo<K>(Mutex<Entries<K>>);

/// At most one decoded object for each slot of the store. When reads of single objects find no room, objects that were not read for a while are
/// evicted. If all objects are read in turn and do not fit, the same part of the objects stays decoded.
struct Entries<K> {
    by_slot: Vec<Option<Entry<K>>>,
    /// The number of decoded objects.
    count: usize,
    budget: usize,
    bytes: usize,
    /// The bytes of all memos of the store.
    all_bytes: Arc<AtomicUsize>,
    /// The number of reads.
    clock: u64,
    /// The time of the last eviction.
    evicted_at: u64,
}

struct Entry<K> {
    raw: RawObject,
    decoded: Arc<K>,
    /// The estimated bytes.
    cost: usize,
    /// The time of the last read.
    used: u64,
}

impl<K> Entry<K> {
    fn new(raw: &RawObject, decoded: &Arc<K>, cost: usize) -> Self {
        Self { raw: raw.clone(), decoded: decoded.clone(), cost, used: 0 }
    }
}

/// Decodes an object. Returns the estimated bytes of the decoded object, too.
fn decode<K: DeserializeOwned>(object: &RawObject) -> Result<(Arc<K>, usize), DecodeError> {
    let json = object.json();
    Ok((object.decode_json(&json)?, cost::<K>(&json)))
}

impl<K> Memo<K> {
    fn new(budget: usize, all_bytes: Arc<AtomicUsize>) -> Self {
        Self(Mutex::new(Entries {
            by_slot: Vec::new(),
            count: 0,
            budget,
            bytes: 0,
            all_bytes,
            clock: 0,
            evicted_at: 0,
        }))
    }
}

impl<K> Entries<K> {
    fn get(&mut self, slot: Slot, raw: &RawObject) -> Option<Arc<K>> {
        self.clock += 1;
        let entry = self.by_slot.get_mut(slot as usize)?.as_mut().filter(|entry| entry.raw.is_same(raw))?;
        entry.used = self.clock;
        Some(entry.decoded.clone())
    }

    fn insert(&mut self, slot: Slot, mut entry: Entry<K>, evict: bool) {
        self.remove(slot as usize);
        if self.bytes + entry.cost > self.budget && evict {
            self.evict_unused();
        }
        if self.bytes + entry.cost > self.budget {
            return;
        }
        if self.by_slot.len() <= slot as usize {
            self.by_slot.resize_with(slot as usize + 1, || None);
        }
        self.count += 1;
        self.bytes += entry.cost;
        self.all_bytes.fetch_add(entry.cost, Ordering::Relaxed);
        entry.used = self.clock;
        self.by_slot[slot as usize] = Some(entry);
    }

    fn remove(&mut self, slot: usize) {
        let Some(Entry { cost, .. }) = self.by_slot.get_mut(slot).and_then(Option::take) else { return };
        self.count -= 1;
        self.bytes -= cost;
        self.all_bytes.fetch_sub(cost, Ordering::Relaxed);
    }

    /// Evicts the objects that were not read during [`UNUSED`] times as many reads as there are decoded objects. Looks at most once in as many
    /// reads as there are slots, which amortises the cost.
    fn evict_unused(&mut self) {
        if self.clock - self.evicted_at < self.by_slot.len() as u64 {
            return;
        }
        self.evicted_at = self.clock;
        let before = self.clock.saturating_sub(UNUSED * self.count as u64);
        for slot in 0..self.by_slot.len() {
            if self.by_slot[slot].as_ref().is_some_and(|entry| entry.used <= before) {
                self.remove(slot);
            }
        }
    }
}

/// An object that was not read during this number of reads, for each decoded object, gives way to other objects.
const UNUSED: u64 = 4;

/// Estimates the bytes of a decoded object: the text, and a struct or the node of a map for each object and array of the JSON.
fn cost<K>(json: &[u8]) -> usize {
    const NODE: usize = 256;
    size_of::<K>() + json.len() + NODE * memchr::memchr2_iter(b'{', b'[', json).count()
}

impl<K> fmt::Debug for Memo<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}
