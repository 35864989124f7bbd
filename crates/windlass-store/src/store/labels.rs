//! The labels of objects. Objects with equal labels share the labels.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use parking_lot::Mutex;
use serde_json::{Map, Value};

/// The labels of an object, sorted by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSet(Arc<[(Box<str>, Box<str>)]>);

impl LabelSet {
    /// Returns the value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(candidate, _)| (**candidate).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// Returns whether the set has exactly these labels. `pairs` is sorted by key and has `count` entries.
    fn has<'a>(&self, count: usize, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
        self.0.len() == count && self.iter().zip(pairs).all(|(own, other)| own == other)
    }

    /// Returns the labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// The label sets of a server: equal sets are stored once.
#[derive(Debug, Default)]
pub struct Labels(Mutex<Interned>);

#[derive(Debug, Default)]
struct Interned {
    sets: HashTable<LabelSet>,
    hasher: RandomState,
    /// The number of sets at which unused sets are removed.
    purge_at: usize,
}

impl Labels {
    /// Returns the label set of an object with these `metadata.labels`.
    pub fn intern(&self, labels: Option<&Map<String, Value>>) -> LabelSet {
        // The map is sorted by key.
        let pairs = labels
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
        let count = labels.map_or(0, Map::len);
        let mut interned = self.0.lock();
        let Interned { sets, hasher, purge_at } = &mut *interned;
        let hash = hash(hasher, pairs.clone());
        if let Some(known) = sets.find(hash, |set| set.has(count, pairs.clone())) {
            return known.clone();
        }
        if sets.len() >= *purge_at {
            sets.retain(|set| Arc::strong_count(&set.0) > 1);
            *purge_at = sets.len() * 2 + 64;
        }
        let set = LabelSet(pairs.map(|(key, value)| (key.into(), value.into())).collect());
        sets.insert_unique(hash, set.clone(), |set| self::hash(hasher, set.iter()));
        set
    }
}

fn hash<'a>(hasher: &RandomState, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> u64 {
    let mut state = hasher.build_hasher();
    pairs.for_each(|pair| pair.hash(&mut state));
    state.finish()
}
