//! The changes that wait for delivery to a handler.

use std::{collections::VecDeque, hash::BuildHasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::{Delta, RawObject};

/// Beyond this many pending changes, later changes of the same object are coalesced.
const EXACT_LIMIT: usize = 1024;
/// Fewer [`Entry::Cancelled`] are not worth a compaction.
const COMPACT_FROM: usize = 32;

/// The changes that wait for delivery to a handler, oldest first.
///
/// Up to [`EXACT_LIMIT`] changes are kept separately. Beyond the limit there is a single entry for each
/// object: the number of objects bounds the length. A renewal begins a further entry for each object.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The objects that existed when the handler was added.
    initial: std::vec::IntoIter<RawObject>,
    entries: VecDeque<Entry>,
    /// The number of [`Entry::Cancelled`] entries. These entries are removed when more than half of the
    /// entries are cancelled.
    cancelled: usize,
    /// The number of entries that have been taken from the front.
    taken: u64,
    /// The positions of the entries that further changes of the same object are merged into, counted from the
    /// first entry ever. The key of an object, read from the entry, is hashed.
    mergeable: HashTable<u64>,
    hasher: RandomState,
    merged: u64,
    /// The number of times that all objects were queued again.
    renewals: u64,
}

/// An entry of the backlog.
#[derive(Debug)]
pub(super) enum Entry {
    Delta(Delta),
    /// The object was deleted and added again.
    Replaced {
        last: Delta,
        added: Delta,
    },
    /// All objects at a time, from the first object that has not been taken.
    Renewed(std::vec::IntoIter<RawObject>),
    /// The initial list ends here. The number of renewals before the end.
    Synced(u64),
    /// The changes cancelled each other.
    Cancelled,
}

impl Backlog {
    pub(super) fn new(initial: Vec<RawObject>) -> Self {
        Self { initial: initial.into_iter(), ..Self::default() }
    }

    /// Appends the objects of a first list.
    pub(super) fn push_initial(&mut self, objects: Vec<RawObject>) {
        if self.len() == 0 {
            self.initial = objects.into_iter();
            return;
        }
        objects.into_iter().for_each(|object| self.push(Delta::Added { object, initial: true }));
    }

    pub(super) fn push(&mut self, delta: Delta) {
        if self.mergeable.is_empty() && self.entries.len() < EXACT_LIMIT {
            self.entries.push_back(Entry::Delta(delta));
            return;
        }
        let end = self.taken + self.entries.len() as u64;
        let (taken, entries, hasher) = (self.taken, &self.entries, &self.hasher);
        let at = |position: u64| entries.get((position - taken) as usize).and_then(Entry::object);
        let is_same =
            |&position: &u64| at(position).is_some_and(|object| is_same_name(object, delta.object()));
        let hash = hash(hasher, delta.object());
        let Some(&position) = self.mergeable.find(hash, is_same) else {
            let hash_of = |&position: &u64| hash_at(entries, hasher, position - taken);
            self.mergeable.insert_unique(hash, end, hash_of);
            self.entries.push_back(Entry::Delta(delta));
            return;
        };
        let Some(entry) = self.entries.get_mut((position - self.taken) as usize) else { return };
        self.merged += 1;
        *entry = merge(std::mem::replace(entry, Entry::Cancelled), delta);
        if let Entry::Cancelled = entry {
            self.cancelled += 1;
            self.remove(hash, position);
            while let Some(Entry::Cancelled) = self.entries.back() {
                self.entries.pop_back();
                self.cancelled -= 1;
            }
            if self.cancelled > COMPACT_FROM && self.cancelled * 2 > self.entries.len() {
                self.compact();
            }
        }
    }

    /// Removes all [`Entry::Cancelled`].
    fn compact(&mut self) {
        let mut is_mergeable = vec![false; self.entries.len()];
        self.mergeable.iter().for_each(|&position| is_mergeable[(position - self.taken) as usize] = true);
        self.mergeable.clear();
        let entries = std::mem::take(&mut self.entries);
        for (entry, is_mergeable) in entries.into_iter().zip(is_mergeable) {
            let Some(object) = entry.object() else {
                if !matches!(entry, Entry::Cancelled) {
                    self.entries.push_back(entry);
                }
                continue;
            };
            if is_mergeable {
                let hash = hash(&self.hasher, object);
                let (taken, entries, hasher) = (self.taken, &self.entries, &self.hasher);
                let hash_of = |&position: &u64| hash_at(entries, hasher, position - taken);
                self.mergeable.insert_unique(hash, taken + entries.len() as u64, hash_of);
            }
            self.entries.push_back(entry);
        }
        self.cancelled = 0;
    }

    fn remove(&mut self, hash: u64, position: u64) {
        if let Ok(entry) = self.mergeable.find_entry(hash, |&other| other == position) {
            entry.remove();
        }
    }

    /// Marks the end of the initial list.
    pub(super) fn push_synced(&mut self) {
        self.entries.push_back(Entry::Synced(self.renewals));
    }

    /// Queues all objects again, behind the changes so far. No change is merged into an earlier change: a deletion must not cancel the
    /// addition of an object that the renewal repeats.
    pub(super) fn renew(&mut self, objects: Vec<RawObject>) {
        self.renewals += 1;
        self.mergeable.clear();
        // The new renewal has all objects that an earlier renewal would still deliver, or the deletions of these objects are queued. The end
        // of an earlier initial list no longer counts.
        self.entries.retain(|entry| entry.object().is_some());
        self.cancelled = 0;
        self.entries.push_back(Entry::Renewed(objects.into_iter()));
    }

    /// Returns the number of times that all objects were queued again.
    pub(super) fn renewals(&self) -> u64 {
        self.renewals
    }

    /// Takes up to `most` entries.
    pub(super) fn take(&mut self, most: usize) -> Vec<Entry> {
        let initial = self.initial.by_ref().take(most);
        let mut batch: Vec<_> =
            initial.map(|object| Entry::Delta(Delta::Added { object, initial: true })).collect();
        while batch.len() < most {
            if let Some(Entry::Renewed(objects)) = self.entries.front_mut()
                && let Some(object) = objects.next()
            {
                batch.push(Entry::Delta(Delta::Added { object, initial: true }));
                continue;
            }
            // No change may be merged into an entry that has been taken.
            if !self.mergeable.is_empty()
                && let Some(object) = self.entries.front().and_then(Entry::object)
            {
                self.remove(hash(&self.hasher, object), self.taken);
            }
            let Some(entry) = self.entries.pop_front() else { break };
            self.taken += 1;
            self.cancelled -= usize::from(matches!(entry, Entry::Cancelled));
            batch.push(entry);
        }
        batch
    }

    pub(super) fn len(&self) -> usize {
        self.initial.len() + self.entries.len() + self.renewed()
    }

    /// Returns the number of objects of renewals.
    fn renewed(&self) -> usize {
        if self.renewals == 0 {
            return 0;
        }
        let renewed = self.entries.iter().map(|entry| match entry {
            Entry::Renewed(objects) => objects.len(),
            _ => 0,
        });
        renewed.sum()
    }

    /// Returns the bytes of the backlog, including the old states of objects in the entries.
    pub(super) fn memory(&self) -> usize {
        (self.initial.len() + self.renewed()) * size_of::<RawObject>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.mergeable.capacity() * (size_of::<u64>() + 1)
            + self.entries.iter().map(Entry::past_memory).sum::<usize>()
    }

    /// Returns the number of changes that were merged into other changes.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }
}

impl Entry {
    /// Returns the bytes of a state that the store no longer has.
    fn past_memory(&self) -> usize {
        match self {
            Self::Delta(Delta::Updated { old, new }) if !old.is_same(new) => old.memory(),
            Self::Delta(Delta::Deleted { last, .. }) => last.memory(),
            Self::Replaced { last, .. } => last.object().memory(),
            Self::Delta(_) | Self::Renewed(_) | Self::Synced(_) | Self::Cancelled => 0,
        }
    }

    /// Returns the object that the entry is about.
    fn object(&self) -> Option<&RawObject> {
        match self {
            Self::Delta(delta) | Self::Replaced { added: delta, .. } => Some(delta.object()),
            Self::Renewed(_) | Self::Synced(_) | Self::Cancelled => None,
        }
    }
}

/// Returns the hash of the object of the entry at an index.
fn hash_at(entries: &VecDeque<Entry>, hasher: &RandomState, index: u64) -> u64 {
    entries.get(index as usize).and_then(Entry::object).map_or(0, |object| hash(hasher, object))
}

fn hash(hasher: &RandomState, object: &RawObject) -> u64 {
    hasher.hash_one((object.namespace_bytes(), object.name_bytes()))
}

fn is_same_name(one: &RawObject, other: &RawObject) -> bool {
    one.is_named(other.namespace_bytes(), other.name_bytes())
}

/// Merges a later change of the same object into an entry.
fn merge(entry: Entry, delta: Delta) -> Entry {
    use Delta::{Added, Deleted, Updated};
    match (entry, delta) {
        (Entry::Delta(Added { initial, .. }), Updated { new, .. }) => {
            Entry::Delta(Added { object: new, initial })
        }
        (Entry::Delta(Added { .. }), Deleted { .. }) => Entry::Cancelled,
        (Entry::Delta(Updated { old, .. }), Updated { new, .. }) => Entry::Delta(Updated { old, new }),
        (Entry::Delta(last @ Deleted { .. }), added @ Added { .. }) => Entry::Replaced { last, added },
        (Entry::Replaced { last, added: Added { initial, .. } }, Updated { new, .. }) => {
            Entry::Replaced { last, added: Added { object: new, initial } }
        }
        (Entry::Replaced { last, .. }, Deleted { .. }) => Entry::Delta(last),
        (_, delta) => Entry::Delta(delta),
    }
}
