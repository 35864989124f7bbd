//! The unseen writes of a cache, by the parts of a query.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, Hash},
    ops::Bound,
    sync::Arc,
};

use windlass_cache::{ObjectKey, Query, RawObject};

/// A hash of a part of a query that an object has or has not. Two parts may have one hash: the query itself decides about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term(u64);

/// The keys of written objects for each [`Term`]. Named indexes are learned when a query uses the index first.
#[derive(Default)]
pub(super) struct Postings {
    keys: BTreeSet<(Term, ObjectKey)>,
    indexes: Vec<NamedIndex>,
}

struct NamedIndex {
    name: Arc<str>,
    /// False while the terms of the objects are computed that were written before the index was added.
    is_complete: bool,
}

impl Term {
    /// Returns the most selective part of a query; `None` if the query has only a label selector.
    pub(super) fn of_query(query: &Query<'_>) -> Option<Self> {
        let indexed = || query.named_index().map(|(index, value)| Self::indexed(index, value));
        query
            .owner_uid()
            .map(Self::owner)
            .or_else(indexed)
            .or_else(|| query.in_namespace().map(Self::namespace))
    }

    fn namespace(namespace: &str) -> Self {
        Self::new(("namespace", namespace))
    }

    fn owner(uid: &str) -> Self {
        Self::new(("owner", uid))
    }

    /// The term of the objects with a value in a named index.
    pub(super) fn indexed(index: &str, value: &str) -> Self {
        Self::new(("index", index, value))
    }

    fn new(part: impl Hash) -> Self {
        Self(foldhash::fast::FixedState::default().hash_one(part))
    }
}

impl Postings {
    /// Returns the keys of the objects with a term, in order.
    pub(super) fn keys(&self, term: Term) -> impl Iterator<Item = &ObjectKey> {
        // No key is empty, so that all keys of the term follow.
        let first = (term, ObjectKey::cluster(""));
        let keys = self.keys.range((Bound::Included(first), Bound::Unbounded));
        keys.take_while(move |(of, _)| *of == term).map(|(_, key)| key)
    }

    /// Adds an object. `indexed` are the terms of the object in the named indexes.
    pub(super) fn insert(&mut self, key: &ObjectKey, object: &RawObject, indexed: &[Term]) {
        each_term(object, |term| {
            self.keys.insert((term, key.clone()));
        });
        self.insert_terms(key, indexed);
    }

    /// Adds an object under terms of named indexes.
    pub(super) fn insert_terms(&mut self, key: &ObjectKey, indexed: &[Term]) {
        self.keys.extend(indexed.iter().map(|term| (*term, key.clone())));
    }

    /// Removes an object, which was added with these terms.
    pub(super) fn remove(&mut self, key: &ObjectKey, object: &RawObject, indexed: &[Term]) {
        let mut remove = |term| {
            self.keys.remove(&(term, key.clone()));
        };
        each_term(object, &mut remove);
        indexed.iter().copied().for_each(remove);
    }

    /// Returns the named indexes after the first `known` indexes.
    pub(super) fn indexes_from(&self, known: usize) -> Vec<Arc<str>> {
        self.indexes.iter().skip(known).map(|index| index.name.clone()).collect()
    }

    /// Returns whether the postings have all objects of a named index.
    pub(super) fn has_index(&self, index: &str) -> bool {
        self.indexes.iter().any(|known| *known.name == *index && known.is_complete)
    }

    /// Adds a named index. Returns false if the index is known.
    pub(super) fn begin_index(&mut self, index: &str) -> bool {
        let is_new = self.indexes.iter().all(|known| *known.name != *index);
        if is_new {
            self.indexes.push(NamedIndex { name: index.into(), is_complete: false });
        }
        is_new
    }

    /// Notes that the postings have all objects of a named index.
    pub(super) fn complete_index(&mut self, index: &str) {
        let of_name = self.indexes.iter_mut().filter(|known| *known.name == *index);
        of_name.for_each(|known| known.is_complete = true);
    }
}

fn each_term(object: &RawObject, mut visit: impl FnMut(Term)) {
    object.namespace().map(Term::namespace).into_iter().for_each(&mut visit);
    object.owner_references().for_each(|owner| visit(Term::owner(owner.uid)));
}
