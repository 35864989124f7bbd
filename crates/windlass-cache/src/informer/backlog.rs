//! What a handler has not been told yet.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::{Delta, ObjectKey, RawObject};

/// A handler that is further behind than this many changes is told the latest of each object only.
const FAITHFUL: usize = 1024;

/// What a handler has not been told yet, oldest first.
///
/// Up to [`FAITHFUL`] changes are kept one by one. What comes on top is kept per object, so that the length is bounded
/// by the number of objects.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The objects that were there when the handler began.
    initial: std::vec::IntoIter<RawObject>,
    entries: VecDeque<Entry>,
    /// How many entries have been taken from the front since the beginning.
    taken: u64,
    /// Where the entries lie that further changes of the same object are merged into, counted from the beginning.
    mergeable: HashMap<ObjectKey, u64>,
    merged: u64,
}

/// One thing to tell.
#[derive(Debug)]
pub(super) enum Entry {
    Delta(Delta),
    /// Gone, and there again: what is there now.
    Replaced {
        last: Delta,
        added: Delta,
    },
    /// The initial list is through.
    Synced,
    /// Changes that cancelled each other.
    Nothing,
}

impl Backlog {
    pub(super) fn new(initial: Vec<RawObject>) -> Self {
        Self { initial: initial.into_iter(), ..Self::default() }
    }

    /// The objects that were there when the handler began, when they are known only later. Nothing else has come yet.
    pub(super) fn push_initial(&mut self, objects: Vec<RawObject>) {
        debug_assert!(self.len() == 0, "the first list comes first");
        self.initial = objects.into_iter();
    }

    pub(super) fn push(&mut self, delta: Delta) {
        if self.mergeable.is_empty() && self.entries.len() < FAITHFUL {
            self.entries.push_back(Entry::Delta(delta));
            return;
        }
        let end = self.taken + self.entries.len() as u64;
        let key = delta.object().key();
        let place = *self.mergeable.entry(key.clone()).or_insert(end);
        if place == end {
            self.entries.push_back(Entry::Delta(delta));
            return;
        }
        let Some(entry) = self.entries.get_mut((place - self.taken) as usize) else { return };
        self.merged += 1;
        *entry = merge(std::mem::replace(entry, Entry::Nothing), delta);
        if let Entry::Nothing = entry {
            self.mergeable.remove(&key);
        }
    }

    /// The initial list ends here.
    pub(super) fn push_synced(&mut self) {
        self.entries.push_back(Entry::Synced);
    }

    /// Takes up to `most` things to tell.
    pub(super) fn take(&mut self, most: usize) -> Vec<Entry> {
        let initial = self.initial.by_ref().take(most);
        let mut batch: Vec<_> =
            initial.map(|object| Entry::Delta(Delta::Added { object, initial: true })).collect();
        while batch.len() < most {
            let Some(entry) = self.entries.pop_front() else { break };
            self.taken += 1;
            if !self.mergeable.is_empty() {
                self.forget(&entry);
            }
            batch.push(entry);
        }
        batch
    }

    /// No further change is merged into an entry that has been taken.
    fn forget(&mut self, entry: &Entry) {
        let (Entry::Delta(delta) | Entry::Replaced { added: delta, .. }) = entry else { return };
        let key = delta.object().key();
        if self.mergeable.get(&key).is_some_and(|&place| place < self.taken) {
            self.mergeable.remove(&key);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.initial.len() + self.entries.len()
    }

    /// How many changes were merged into others.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }
}

/// What `entry` and a later change of the same object come to.
fn merge(entry: Entry, delta: Delta) -> Entry {
    use Delta::{Added, Deleted, Updated};
    match (entry, delta) {
        (Entry::Delta(Added { initial, .. }), Updated { new, .. }) => {
            Entry::Delta(Added { object: new, initial })
        }
        (Entry::Delta(Added { .. }), Deleted { .. }) => Entry::Nothing,
        (Entry::Delta(Updated { old, .. }), Updated { new, .. }) => Entry::Delta(Updated { old, new }),
        (Entry::Delta(last @ Deleted { .. }), added @ Added { .. }) => Entry::Replaced { last, added },
        (Entry::Replaced { last, added: Added { initial, .. } }, Updated { new, .. }) => {
            Entry::Replaced { last, added: Added { object: new, initial } }
        }
        (Entry::Replaced { last, .. }, Deleted { .. }) => Entry::Delta(last),
        (_, delta) => Entry::Delta(delta),
    }
}
