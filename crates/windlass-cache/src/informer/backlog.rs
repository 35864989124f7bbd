//! The changes that wait for delivery to a handler.

use std::{collections::VecDeque, hash::BuildHasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::{Delta, RawObject};

/// Beyond this many pending changes, later changes of the same object are coalesced.
const EXACT_LIMIT: usize = 1024;
/// The most changes of one object in an entry.
const MOST_OF_OBJECT: usize = 4;

/// The changes that wait for delivery to a handler, oldest first.
///
/// Up to [`EXACT_LIMIT`] changes are kept separately. Beyond the limit there is a single entry for each name of an object. An entry stays
/// after the object is deleted: the number of names that were used since the last delivery bounds the length, and not the number of objects
/// in the store. A renewal begins a further entry for each object.
///
/// The updates of an object become a single update from the first to the last state. The handler is not told about a state in between, nor
/// about an owner or a label that only such a state has.
///
/// An entry keeps the change before a deletion, even if the handler has not heard of the object yet: readers of the cache have seen the
/// object, and depend on the deletion.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The objects that existed when the handler was added.
    initial: std::vec::IntoIter<RawObject>,
    entries: VecDeque<Entry>,
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
    /// Several changes of an object, at most [`MOST_OF_OBJECT`]: a deletion, with the change before or the addition of the next object of
    /// the name.
    Several(Vec<Delta>),
    /// All objects at a time, from the first object that has not been taken.
    Renewed(std::vec::IntoIter<RawObject>),
    /// The initial list ends here. The number of renewals before the end.
    Synced(u64),
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
        if let Some(entry) = self.entries.get_mut((position - self.taken) as usize) {
            self.merged += entry.merge(delta);
        }
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
    /// Adds a later change of the same object. Returns the number of changes that the handler does not get.
    fn merge(&mut self, delta: Delta) -> u64 {
        let mut changes = match std::mem::replace(self, Self::Several(Vec::new())) {
            Self::Delta(before) => vec![before],
            Self::Several(changes) => changes,
            Self::Renewed(_) | Self::Synced(_) => Vec::new(),
        };
        let all = changes.len() + 1;
        merge(&mut changes, delta);
        let lost = all - changes.len();
        *self = match <[Delta; 1]>::try_from(changes) {
            Ok([delta]) => Self::Delta(delta),
            Err(changes) => Self::Several(changes),
        };
        lost as u64
    }

    /// Returns the bytes of the states that the store no longer has.
    fn past_memory(&self) -> usize {
        match self {
            Self::Delta(delta) => past_memory(delta),
            Self::Several(changes) => {
                let (last, earlier) = changes.split_at(changes.len().saturating_sub(1));
                earlier.iter().flat_map(Delta::states).map(RawObject::memory).sum::<usize>()
                    + last.iter().map(past_memory).sum::<usize>()
            }
            Self::Renewed(_) | Self::Synced(_) => 0,
        }
    }

    /// Returns the object that the entry is about.
    fn object(&self) -> Option<&RawObject> {
        match self {
            Self::Delta(delta) => Some(delta.object()),
            Self::Several(changes) => changes.last().map(Delta::object),
            Self::Renewed(_) | Self::Synced(_) => None,
        }
    }
}

/// Returns the bytes of the states of a last change that the store no longer has.
fn past_memory(delta: &Delta) -> usize {
    match delta {
        Delta::Updated { old, new } if !old.is_same(new) => old.memory(),
        Delta::Deleted { last, .. } => last.memory(),
        Delta::Added { .. } | Delta::Updated { .. } => 0,
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

/// Adds a later change of the same object. Of many objects that had the name one after the other, only the first and the last are kept.
fn merge(changes: &mut Vec<Delta>, delta: Delta) {
    use Delta::{Added, Updated};
    let next = match (changes.pop(), delta) {
        (Some(Added { initial, .. }), Updated { new, .. }) => Added { object: new, initial },
        (Some(Updated { old, .. }), Updated { new, .. }) => Updated { old, new },
        (Some(Added { .. }), added @ Added { .. }) => added,
        (before, delta) => {
            changes.extend(before);
            delta
        }
    };
    changes.push(next);
    if changes.len() > MOST_OF_OBJECT
        && let Some(first) = changes.iter().position(|change| matches!(change, Delta::Deleted { .. }))
    {
        changes.drain(first + 1..changes.len().min(first + 3));
    }
}
