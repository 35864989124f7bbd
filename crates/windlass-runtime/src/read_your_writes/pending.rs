//! The writes that a cache has not seen, with their places in the lists.

use std::sync::Arc;

use hashbrown::HashMap;
use windlass_cache::{ObjectKey, Query, RawObject};

use super::{
    CacheView, State, Write,
    postings::{Postings, Term},
};
use crate::namespaced_name::NamespacedName;

/// The smallest number of writes at which seen writes are removed.
const SWEEP: usize = 256;

/// Writes by the key of the object.
pub(super) type Writes = HashMap<ObjectKey, Write, foldhash::fast::FixedState>;

/// The writes that a cache has not seen, with their places in the lists. No method calls a function of a user.
#[derive(Default)]
pub(super) struct Pending {
    writes: HashMap<ObjectKey, PendingWrite, foldhash::fast::FixedState>,
    /// Finds the written objects of a list without a look at all writes.
    postings: Postings,
    /// The number of writes at which seen writes are removed.
    sweep_at: usize,
    ended: u64,
}

/// A write, and the places of the written object.
struct PendingWrite {
    write: Write,
    /// The terms of the object in the named indexes.
    terms: Vec<Term>,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Write> {
        self.writes.get(key).map(|pending| &pending.write)
    }

    /// Returns the number of ended objects with an end that the cache has seen.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// Returns the named indexes after the first `known` indexes. The number of indexes never falls.
    pub(super) fn indexes_from(&self, known: usize) -> Vec<Arc<str>> {
        self.postings.indexes_from(known)
    }

    /// Adds a write. `terms` are the terms of the written object in all [indexes](Self::indexes_from).
    pub(super) fn note(
        &mut self,
        key: &ObjectKey,
        mut write: Write,
        mut terms: Vec<Term>,
        cache: &dyn CacheView,
    ) {
        if let Some(PendingWrite { write: before, terms: before_terms }) = self.writes.get(key) {
            if before.uid == write.uid {
                // The responses to two writes of an object may arrive in either order: the newer write wins, and
                // a gone object stays gone.
                if write.state.is_gone() || before.state.is_gone() {
                    write.state = State::Gone;
                    terms.clear();
                } else if before.revision > write.revision {
                    write.state = before.state.clone();
                    terms.clone_from(before_terms);
                }
                write.revision = write.revision.max(before.revision);
            } else if before.revision > write.revision && !before.is_forgotten(key, cache) {
                // The response to a write of an earlier object of this name arrives late.
                return;
            }
        }
        self.remove(key);
        if let State::Alive(object) = &write.state {
            self.postings.insert(key, object, &terms);
        }
        self.writes.insert(key.clone(), PendingWrite { write, terms });
        if self.writes.len() >= self.sweep_at.max(SWEEP) {
            self.sweep(cache);
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) {
        let Some(PendingWrite { write, terms }) = self.writes.remove(key) else { return };
        match write.state {
            State::Alive(object) => self.postings.remove(key, &object, &terms),
            State::Gone => self.ended += 1,
        }
    }

    /// Adds a named index. Returns the written objects, whose terms [`complete_index`](Self::complete_index) adds; `None` if the index is known.
    pub(super) fn begin_index(&mut self, index: &str) -> Option<Vec<(ObjectKey, RawObject)>> {
        if !self.postings.begin_index(index) {
            return None;
        }
        let object = |(key, pending): (&ObjectKey, &PendingWrite)| match &pending.write.state {
            State::Alive(object) => Some((key.clone(), object.clone())),
            State::Gone => None,
        };
        Some(self.writes.iter().filter_map(object).collect())
    }

    /// Adds the terms of objects in an index, except for objects that have been written since. The postings then have all written
    /// objects of the index.
    pub(super) fn complete_index(&mut self, index: &str, objects: Vec<(ObjectKey, RawObject, Vec<Term>)>) {
        for (key, object, terms) in objects {
            let Some(pending) = self.writes.get_mut(&key) else { continue };
            if matches!(&pending.write.state, State::Alive(written) if written.is_same(&object)) {
                self.postings.insert_terms(&key, &terms);
                pending.terms.extend(terms);
            }
        }
        self.postings.complete_index(index);
    }

    /// Returns the writes that may match a query, and that the cache has not seen. Removes the seen writes among the writes that may match.
    pub(super) fn take_unseen(&mut self, query: &Query<'_>, cache: &dyn CacheView) -> Writes {
        let mut written = Writes::default();
        for key in self.candidates(query) {
            let Some(write) = self.get(&key) else { continue };
            if write.is_seen(&key, cache) {
                self.remove(&key);
            } else if !write.state.is_gone() {
                let write = write.clone();
                written.insert(key, write);
            }
        }
        written
    }

    /// Returns the keys of the writes that may match a query.
    fn candidates(&self, query: &Query<'_>) -> Vec<ObjectKey> {
        let is_indexed = |(index, _)| self.postings.has_index(index);
        let term = if query.named_index().is_none_or(is_indexed) { Term::of_query(query) } else { None };
        match term {
            Some(term) => self.postings.keys(term).cloned().collect(),
            None => self.writes.keys().cloned().collect(),
        }
    }

    /// Removes the objects of the cache with a later write, and adds these objects to `written`. Removes
    /// writes from `written` that the cache shows in a newer form. Meanwhile, other tasks may have forgotten
    /// a write of `written`, or may have written.
    pub(super) fn lay_over(&self, objects: &mut Vec<RawObject>, written: &mut Writes, cache: &dyn CacheView) {
        if self.writes.is_empty() && written.is_empty() {
            return;
        }
        objects.retain(|object| {
            let name = NamespacedName::new(object.namespace(), object.name());
            let pending = self.writes.get_key_value(&name).map(|(key, pending)| (key, &pending.write));
            let Some((key, write)) = pending.or_else(|| written.get_key_value(&name)) else { return true };
            if !write.replaces(object) || write.is_forgotten(key, cache) {
                written.remove(&name);
                return true;
            }
            let (key, write) = (key.clone(), write.clone());
            written.insert(key, write);
            false
        });
    }

    /// Removes the writes that the cache has seen.
    pub(super) fn sweep(&mut self, cache: &dyn CacheView) {
        let seen = self.writes.iter().filter(|(key, pending)| pending.write.is_seen(key, cache));
        for key in seen.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.remove(&key);
        }
        self.sweep_at = SWEEP.max(self.writes.len() * 2);
        self.writes.shrink_to(self.sweep_at);
    }
}
