//! What a handler has not been told yet.

use std::{collections::VecDeque, hash::BuildHasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::{Delta, RawObject};

/// A handler that is further behind than this many changes is told the latest of each object only.
const FAITHFUL: usize = 1024;
/// Fewer entries that say nothing are not worth removing.
const COMPACT_FROM: usize = 32;

/// What a handler has not been told yet, oldest first.
///
/// Up to [`FAITHFUL`] changes are kept one by one. What comes on top is kept per object, so that the length is bounded
/// by the number of objects that the handler knows or is to be told of.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The objects that were there when the handler began.
    initial: std::vec::IntoIter<RawObject>,
    entries: VecDeque<Entry>,
    /// How many entries are [`Entry::Nothing`]. They are removed when they are more than half.
    nothings: usize,
    /// How many entries have been taken from the front since the beginning.
    taken: u64,
    /// Where the entries lie that further changes of the same object are merged into, counted from the beginning.
    /// By the object's name, which is read from the entry.
    mergeable: HashTable<u64>,
    hasher: RandomState,
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

    /// Appends the objects of a first list.
    pub(super) fn push_initial(&mut self, objects: Vec<RawObject>) {
        if self.len() == 0 {
            self.initial = objects.into_iter();
            return;
        }
        objects.into_iter().for_each(|object| self.push(Delta::Added { object, initial: true }));
    }

    pub(super) fn push(&mut self, delta: Delta) {
        if self.mergeable.is_empty() && self.entries.len() < FAITHFUL {
            self.entries.push_back(Entry::Delta(delta));
            return;
        }
        let end = self.taken + self.entries.len() as u64;
        let (taken, entries, hasher) = (self.taken, &self.entries, &self.hasher);
        let at = |place: u64| entries.get((place - taken) as usize).and_then(Entry::object);
        let is_same = |&place: &u64| at(place).is_some_and(|object| is_same_name(object, delta.object()));
        let hash = hash(hasher, delta.object());
        let Some(&place) = self.mergeable.find(hash, is_same) else {
            let hash_of = |&place: &u64| hash_at(entries, hasher, place - taken);
            self.mergeable.insert_unique(hash, end, hash_of);
            self.entries.push_back(Entry::Delta(delta));
            return;
        };
        let Some(entry) = self.entries.get_mut((place - self.taken) as usize) else { return };
        self.merged += 1;
        *entry = merge(std::mem::replace(entry, Entry::Nothing), delta);
        if let Entry::Nothing = entry {
            self.nothings += 1;
            self.remove(hash, place);
            while let Some(Entry::Nothing) = self.entries.back() {
                self.entries.pop_back();
                self.nothings -= 1;
            }
            if self.nothings > COMPACT_FROM && self.nothings * 2 > self.entries.len() {
                self.compact();
            }
        }
    }

    /// Removes the entries that say nothing.
    fn compact(&mut self) {
        let mut is_mergeable = vec![false; self.entries.len()];
        self.mergeable.iter().for_each(|&place| is_mergeable[(place - self.taken) as usize] = true);
        self.mergeable.clear();
        let entries = std::mem::take(&mut self.entries);
        for (entry, is_mergeable) in entries.into_iter().zip(is_mergeable) {
            let Some(object) = entry.object() else {
                if let Entry::Synced = entry {
                    self.entries.push_back(entry);
                }
                continue;
            };
            if is_mergeable {
                let hash = hash(&self.hasher, object);
                let (taken, entries, hasher) = (self.taken, &self.entries, &self.hasher);
                let hash_of = |&place: &u64| hash_at(entries, hasher, place - taken);
                self.mergeable.insert_unique(hash, taken + entries.len() as u64, hash_of);
            }
            self.entries.push_back(entry);
        }
        self.nothings = 0;
    }

    fn remove(&mut self, hash: u64, place: u64) {
        if let Ok(entry) = self.mergeable.find_entry(hash, |&other| other == place) {
            entry.remove();
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
            // No further change is merged into an entry that has been taken.
            if !self.mergeable.is_empty()
                && let Some(object) = self.entries.front().and_then(Entry::object)
            {
                self.remove(hash(&self.hasher, object), self.taken);
            }
            let Some(entry) = self.entries.pop_front() else { break };
            self.taken += 1;
            self.nothings -= usize::from(matches!(entry, Entry::Nothing));
            batch.push(entry);
        }
        batch
    }

    pub(super) fn len(&self) -> usize {
        self.initial.len() + self.entries.len()
    }

    /// Returns the bytes of memory that the backlog takes, with the states of objects that only it keeps.
    pub(super) fn memory(&self) -> usize {
        self.initial.len() * size_of::<RawObject>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.mergeable.capacity() * (size_of::<u64>() + 1)
            + self.entries.iter().map(Entry::past_memory).sum::<usize>()
    }

    /// How many changes were merged into others.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }
}

impl Entry {
    /// Bytes of the state that the store no longer has.
    fn past_memory(&self) -> usize {
        match self {
            Self::Delta(Delta::Updated { old, new }) if !old.is_same(new) => old.memory(),
            Self::Delta(Delta::Deleted { last, .. }) => last.memory(),
            Self::Replaced { last, .. } => last.object().memory(),
            Self::Delta(_) | Self::Synced | Self::Nothing => 0,
        }
    }

    /// The object that it is about.
    fn object(&self) -> Option<&RawObject> {
        match self {
            Self::Delta(delta) | Self::Replaced { added: delta, .. } => Some(delta.object()),
            Self::Synced | Self::Nothing => None,
        }
    }
}

/// The hash of the object that the entry at an index is about.
fn hash_at(entries: &VecDeque<Entry>, hasher: &RandomState, index: u64) -> u64 {
    entries.get(index as usize).and_then(Entry::object).map_or(0, |object| hash(hasher, object))
}

fn hash(hasher: &RandomState, object: &RawObject) -> u64 {
    hasher.hash_one((object.namespace_bytes(), object.name_bytes()))
}

fn is_same_name(one: &RawObject, other: &RawObject) -> bool {
    one.is_named(other.namespace_bytes(), other.name_bytes())
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
