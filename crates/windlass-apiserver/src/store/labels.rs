//! The labels of objects, shared by all objects that have the same ones.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

/// The labels of one object, sorted by key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LabelSet(Arc<[(Box<str>, Box<str>)]>);

impl LabelSet {
    /// The value of a label.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(candidate, _)| (**candidate).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// The labels, sorted by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// The label sets of one server: equal sets are stored once.
#[derive(Debug, Default)]
pub(crate) struct Labels(Mutex<Interned>);

#[derive(Debug, Default)]
struct Interned {
    sets: HashSet<LabelSet>,
    /// The number of sets at which those without a user are looked for.
    purge_at: usize,
}

impl Labels {
    /// The label set of an object with these `metadata.labels`.
    pub(crate) fn intern(&self, labels: Option<&Map<String, Value>>) -> LabelSet {
        let pairs = labels.into_iter().flatten();
        // The map is sorted by key.
        let set = LabelSet(
            pairs
                .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()))
                .collect(),
        );
        let mut interned = self.0.lock();
        if let Some(known) = interned.sets.get(&set) {
            return known.clone();
        }
        if interned.sets.len() >= interned.purge_at {
            interned.sets.retain(|set| Arc::strong_count(&set.0) > 1);
            interned.purge_at = interned.sets.len() * 2 + 64;
        }
        interned.sets.insert(set.clone());
        set
    }
}
