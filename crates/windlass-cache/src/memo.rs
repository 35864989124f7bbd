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

use crate::{DecodeError, RawObject};

/// The memos of a store: one for each type that is decoded.
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

/// Decodes the objects of a store as `K`, and remembers recently decoded ones. Cheap to clone.
pub struct Decoder<K> {
    memo: Arc<Memo<K>>,
}

impl<K> Decoder<K> {
    pub(crate) fn new(memo: Arc<Memo<K>>) -> Self {
        Self { memo }
    }
}

impl<K: DeserializeOwned> Decoder<K> {
    /// Decodes an object, or returns the remembered one.
    ///
    /// # Errors
    /// The object is not a `K`.
    pub fn decode(&self, object: &RawObject) -> Result<Arc<K>, DecodeError> {
        self.memo.decode(object)
    }
}

impl<K> Clone for Decoder<K> {
    fn clone(&self) -> Self {
        Self { memo: self.memo.clone() }
    }
}

impl<K> fmt::Debug for Decoder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

/// Decoded objects. When they grow beyond a budget, the least recently used half is evicted.
pub(crate) struct Memo<K> {
    budget: usize,
    entries: Mutex<Entries<K>>,
}

struct Entries<K> {
    by_address: HashMap<usize, Entry<K>>,
    bytes: usize,
    /// The bytes of all memos of the store.
    all_bytes: Arc<AtomicUsize>,
    clock: u64,
}

struct Entry<K> {
    /// Keeps the address from being reused.
    raw: RawObject,
    decoded: Arc<K>,
    used: u64,
}

impl<K> Memo<K> {
    fn new(budget: usize, all_bytes: Arc<AtomicUsize>) -> Self {
        let entries = Entries { by_address: HashMap::new(), bytes: 0, all_bytes, clock: 0 };
        Self { budget, entries: Mutex::new(entries) }
    }
}

impl<K: DeserializeOwned> Memo<K> {
    /// Returns the remembered decoded object, or decodes it.
    pub(crate) fn decode(&self, raw: &RawObject) -> Result<Arc<K>, DecodeError> {
        if let Some(decoded) = self.entries.lock().get(raw) {
            return Ok(decoded);
        }
        let decoded = raw.decode::<K>()?;
        self.entries.lock().insert(raw, decoded.clone(), self.budget);
        Ok(decoded)
    }
}

impl<K> Entries<K> {
    fn get(&mut self, raw: &RawObject) -> Option<Arc<K>> {
        self.clock += 1;
        let entry = self.by_address.get_mut(&raw.address())?;
        entry.used = self.clock;
        Some(entry.decoded.clone())
    }

    fn insert(&mut self, raw: &RawObject, decoded: Arc<K>, budget: usize) {
        let cost = cost(raw);
        if cost > budget {
            return;
        }
        self.clock += 1;
        let entry = Entry { raw: raw.clone(), decoded, used: self.clock };
        if self.by_address.insert(raw.address(), entry).is_none() {
            self.bytes += cost;
            self.all_bytes.fetch_add(cost, Ordering::Relaxed);
        }
        if self.bytes > budget {
            self.evict_older_half();
        }
    }

    /// Evicts the older half. Evicting many at once amortises the cost.
    fn evict_older_half(&mut self) {
        let mut ages: Vec<_> = self.by_address.values().map(|entry| entry.used).collect();
        let middle = ages.len() / 2;
        let (_, &mut middle, _) = ages.select_nth_unstable(middle);
        self.by_address.retain(|_, entry| entry.used >= middle);
        let before = self.bytes;
        self.bytes = self.by_address.values().map(|entry| cost(&entry.raw)).sum();
        self.all_bytes.fetch_sub(before - self.bytes, Ordering::Relaxed);
    }
}

/// Estimates the bytes of a decoded object: the types of Kubernetes take about six times their JSON.
fn cost(raw: &RawObject) -> usize {
    6 * raw.json_length() + 128
}

impl<K> fmt::Debug for Memo<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").field("budget", &self.budget).finish_non_exhaustive()
    }
}
