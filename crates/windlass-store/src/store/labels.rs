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

    /// Returns an estimate of the memory of the set, in bytes.
    pub(super) fn weight(&self) -> usize {
        /// Of a label, besides the texts: two pointers with lengths, and the rounding of two allocations.
        const OVERHEAD: usize = 48;
        self.iter().map(|(key, value)| OVERHEAD + key.len() + value.len()).sum::<usize>() + OVERHEAD
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
    /// The estimated memory of all sets, in bytes.
    weight: usize,
    /// The memory at which unused sets are removed.
    purge_at: usize,
}

/// The memory of unused sets that is never looked for, in bytes.
const UNUSED: usize = 64 << 10;

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
        let Interned { sets, hasher, weight, purge_at } = &mut *interned;
        let hash = hash(hasher, pairs.clone());
        if let Some(known) = sets.find(hash, |set| set.has(count, pairs.clone())) {
            return known.clone();
        }
        if *weight >= *purge_at {
            sets.retain(|set| Arc::strong_count(&set.0) > 1);
            *weight = sets.iter().map(LabelSet::weight).sum();
            *purge_at = *weight * 2 + UNUSED;
        }
        let set = LabelSet(pairs.map(|(key, value)| (key.into(), value.into())).collect());
        *weight += set.weight();
        sets.insert_unique(hash, set.clone(), |set| self::hash(hasher, set.iter()));
        set
    }
}

fn hash<'a>(hasher: &RandomState, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> u64 {
    let mut state = hasher.build_hasher();
    pairs.for_each(|pair| pair.hash(&mut state));
    state.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(labels: &Labels, name: usize, count: usize) -> LabelSet {
        let map = (0..count).map(|number| (format!("{number:05}"), json!(name.to_string()))).collect();
        labels.intern(Some(&map))
    }

    #[test]
    fn equal_labels_are_shared() {
        let labels = Labels::default();
        let (first, second) = (set(&labels, 1, 3), set(&labels, 1, 3));
        assert!(Arc::ptr_eq(&first.0, &second.0));
    }

    #[test]
    fn large_unused_sets_do_not_wait_for_many_other_sets() {
        let labels = Labels::default();
        let kept = set(&labels, 0, 1);
        for name in 1..20 {
            set(&labels, name, 5_000);
        }
        let interned = labels.0.lock();
        assert!(interned.sets.len() <= 3, "{} sets", interned.sets.len());
        drop(interned);
        assert!(Arc::ptr_eq(&kept.0, &set(&labels, 0, 1).0));
    }
}
