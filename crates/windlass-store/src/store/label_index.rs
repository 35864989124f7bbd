//! An index of the objects of a resource by labels.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{LabelSet, Log, ResourceId, View};

/// The keys of objects by label, at a revision.
///
/// An index is made when a list first selects by labels, and brought up to date with the events since then.
pub(super) struct LabelIndex {
    revision: u64,
    /// The revision of the last change of the resource until then.
    changed: u64,
    keys: HashMap<Box<str>, HashMap<Box<str>, Keys>>,
}

/// The keys of objects, in key order.
type Keys = BTreeSet<Arc<str>>;

impl LabelIndex {
    pub(super) fn new(view: &View, id: &ResourceId) -> Self {
        let mut index = Self { revision: view.revision(), changed: view.changed(id), keys: HashMap::new() };
        for (key, stored) in view.range(id, None) {
            index.insert(key, stored.labels());
        }
        index
    }

    /// Brings the index to the revision of `view`. Returns `false` if the index is newer: an index does not
    /// go back.
    pub(super) fn follow(&mut self, view: &View, id: &ResourceId, log: &Log) -> bool {
        let wanted = view.revision();
        if self.changed == view.changed(id) {
            self.revision = self.revision.max(wanted);
            return true;
        }
        if self.revision >= wanted {
            return false;
        }
        let many = view.count(id) / 2 + 64;
        match log.after(self.revision).filter(|events| events.len() <= many) {
            // A commit publishes the view first and the event afterwards.
            Some(events) if events.last().map_or(self.revision, |last| last.rv) < view.changed(id) => {
                return false;
            }
            Some(events) => {
                for event in events.iter().take_while(|event| event.rv <= wanted) {
                    if let Some(old) = &event.old {
                        self.remove(&event.key, old.labels());
                    }
                    if event.change != super::Change::Deleted {
                        self.insert(&event.key, event.object.labels());
                    }
                }
                self.revision = wanted;
                self.changed = view.changed(id);
            }
            None => *self = Self::new(view, id),
        }
        true
    }

    /// Returns whether the index needs events that the log no longer has: the next list by labels makes a new index.
    pub(super) fn is_lost(&self, view: &View, id: &ResourceId, log: &Log) -> bool {
        self.changed != view.changed(id) && self.revision < log.start()
    }

    /// Returns the keys of the objects that have a label.
    pub(super) fn keys(&self, label: &str, value: &str) -> Option<&Keys> {
        self.keys.get(label)?.get(value)
    }

    fn insert(&mut self, key: &Arc<str>, labels: &LabelSet) {
        for (label, value) in labels.iter() {
            let values = match self.keys.get_mut(label) {
                Some(values) => values,
                None => self.keys.entry(label.into()).or_default(),
            };
            match values.get_mut(value) {
                Some(keys) => keys.insert(Arc::clone(key)),
                None => values.entry(value.into()).or_default().insert(Arc::clone(key)),
            };
        }
    }

    fn remove(&mut self, key: &Arc<str>, labels: &LabelSet) {
        for (label, value) in labels.iter() {
            let Some(values) = self.keys.get_mut(label) else { continue };
            let Some(keys) = values.get_mut(value) else { continue };
            keys.remove(key);
            if keys.is_empty() {
                values.remove(value);
            }
            if values.is_empty() {
                self.keys.remove(label);
            }
        }
    }
}
