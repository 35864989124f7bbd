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
use crate::{DecodeError, RawObject};

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
        let decoded = object.decode::<K>()?;
        self.memo.0.lock().insert(slot, object, decoded.clone(), true);
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
            match object.decode::<K>() {
                Ok(decoded) => {
                    self.memo.0.lock().insert(slot, &object, decoded.clone(), false);
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

/// At most one decoded object for each slot of the store. When reads of single objects find no room, the less recently used half is evicted.
struct Entries<K> {
    by_slot: Vec<Option<Entry<K>>>,
    budget: usize,
    bytes: usize,
    /// The bytes of all memos of the store.
    all_bytes: Arc<AtomicUsize>,
    clock: u64,
}

struct Entry<K> {
    raw: RawObject,
    decoded: Arc<K>,
    used: u64,
}

impl<K> Memo<K> {
    fn new(budget: usize, all_bytes: Arc<AtomicUsize>) -> Self {
        Self(Mutex::new(Entries { by_slot: Vec::new(), budget, bytes: 0, all_bytes, clock: 0 }))
    }
}

impl<K> Entries<K> {
    fn get(&mut self, slot: Slot, raw: &RawObject) -> Option<Arc<K>> {
        let entry = self.by_slot.get_mut(slot as usize)?.as_mut().filter(|entry| entry.raw.is_same(raw))?;
        self.clock += 1;
        entry.used = self.clock;
        Some(entry.decoded.clone())
    }

    fn insert(&mut self, slot: Slot, raw: &RawObject, decoded: Arc<K>, evict: bool) {
        self.remove(slot as usize);
        let cost = cost(raw);
        if self.bytes + cost > self.budget && evict {
            self.evict_older_half();
        }
        if self.bytes + cost > self.budget {
            return;
        }
        if self.by_slot.len() <= slot as usize {
            self.by_slot.resize_with(slot as usize + 1, || None);
        }
        self.clock += 1;
        self.by_slot[slot as usize] = Some(Entry { raw: raw.clone(), decoded, used: self.clock });
        self.bytes += cost;
        self.all_bytes.fetch_add(cost, Ordering::Relaxed);
    }

    fn remove(&mut self, slot: usize) {
        let Some(entry) = self.by_slot.get_mut(slot).and_then(Option::take) else { return };
        let cost = cost(&entry.raw);
        self.bytes -= cost;
        self.all_bytes.fetch_sub(cost, Ordering::Relaxed);
    }

    /// Evicts the older half. Evicting many at once amortises the cost.
    fn evict_older_half(&mut self) {
        let mut ages: Vec<_> = self.by_slot.iter().flatten().map(|entry| entry.used).collect();
        if ages.is_empty() {
            return;
        }
        let middle = ages.len() / 2;
        let (_, &mut middle, _) = ages.select_nth_unstable(middle);
        for slot in 0..self.by_slot.len() {
            if self.by_slot[slot].as_ref().is_some_and(|entry| entry.used <= middle) {
                self.remove(slot);
            }
        }
    }
}

/// Estimates the bytes of a decoded object: the types of Kubernetes take about six times their JSON.
fn cost(raw: &RawObject) -> usize {
    6 * raw.json_length() + 128
}

impl<K> fmt::Debug for Memo<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}
