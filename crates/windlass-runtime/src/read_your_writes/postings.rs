//! The unseen writes of a cache, by the parts of a query.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, Hash},
    ops::Bound,
};

use windlass_cache::{ObjectKey, Query, RawObject};

use super::CacheView;

/// A hash of a part of a query that an object has or has not. Two parts may have one hash: the query itself decides about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term(u64);

/// The keys of written objects for each [`Term`]. Named indexes are learned when a query uses the index first.
#[derive(Default)]
pub(super) struct Postings {
    keys: BTreeSet<(Term, ObjectKey)>,
    indexes: Vec<String>,
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

    fn indexed(index: &str, value: &str) -> Self {
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

    pub(super) fn insert(&mut self, key: &ObjectKey, object: &RawObject, cache: &dyn CacheView) {
        let Self { keys, indexes } = self;
        each_term(indexes, object, cache, |term| {
            keys.insert((term, key.clone()));
        });
    }

    pub(super) fn remove(&mut self, key: &ObjectKey, object: &RawObject, cache: &dyn CacheView) {
        let Self { keys, indexes } = self;
        each_term(indexes, object, cache, |term| {
            keys.remove(&(term, key.clone()));
        });
    }

    /// Adds a named index over the written objects, unless the index is known.
    pub(super) fn learn<'a>(
        &mut self,
        index: &str,
        objects: impl Iterator<Item = (&'a ObjectKey, &'a RawObject)>,
        cache: &dyn CacheView,
    ) {
        if self.indexes.iter().any(|known| known == index) {
            return;
        }
        self.indexes.push(index.to_owned());
        for (key, object) in objects {
            for value in cache.index_values(index, object) {
                self.keys.insert((Term::indexed(index, &value), key.clone()));
            }
        }
    }
}

fn each_term(indexes: &[String], object: &RawObject, cache: &dyn CacheView, mut visit: impl FnMut(Term)) {
    object.namespace().map(Term::namespace).into_iter().for_each(&mut visit);
    object.owner_references().for_each(|owner| visit(Term::owner(owner.uid)));
    for index in indexes {
        cache.index_values(index, object).iter().for_each(|value| visit(Term::indexed(index, value)));
    }
}
