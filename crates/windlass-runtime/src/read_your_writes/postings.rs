//! The unseen writes of a cache, by the parts of a query.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use windlass_cache::{ObjectKey, Query, RawObject};

use super::CacheView;

/// A part of a query that an object has or has not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term {
    Namespace(String),
    /// The uid of an owner.
    Owner(String),
    /// A value in a named index.
    Indexed(String, String),
}

/// The keys of written objects for each [`Term`]. Named indexes are learned when a query uses the index first.
#[derive(Default)]
pub(super) struct Postings {
    keys: HashMap<Term, BTreeSet<ObjectKey>, foldhash::fast::FixedState>,
    indexes: Vec<String>,
}

impl Term {
    /// Returns the most selective part of a query; `None` if the query has only a label selector.
    pub(super) fn of_query(query: &Query<'_>) -> Option<Self> {
        let owner = query.owner_uid().map(|uid| Self::Owner(uid.to_owned()));
        let indexed = || query.named_index().map(|(index, value)| Self::indexed(index, value));
        let namespace = || query.in_namespace().map(|namespace| Self::Namespace(namespace.to_owned()));
        owner.or_else(indexed).or_else(namespace)
    }

    fn indexed(index: &str, value: &str) -> Self {
        Self::Indexed(index.to_owned(), value.to_owned())
    }
}

impl Postings {
    /// Returns the keys of the objects with a term.
    pub(super) fn keys(&self, term: &Term) -> Vec<ObjectKey> {
        self.keys.get(term).into_iter().flatten().cloned().collect()
    }

    pub(super) fn insert(&mut self, key: &ObjectKey, object: &RawObject, cache: &dyn CacheView) {
        for term in self.terms(object, cache) {
            self.keys.entry(term).or_default().insert(key.clone());
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey, object: &RawObject, cache: &dyn CacheView) {
        for term in self.terms(object, cache) {
            let Some(keys) = self.keys.get_mut(&term) else { continue };
            keys.remove(key);
            if keys.is_empty() {
                self.keys.remove(&term);
            }
        }
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
                self.keys.entry(Term::indexed(index, &value)).or_default().insert(key.clone());
            }
        }
    }

    fn terms(&self, object: &RawObject, cache: &dyn CacheView) -> Vec<Term> {
        let namespace = object.namespace().map(|namespace| Term::Namespace(namespace.to_owned()));
        let owners = object.owner_references().map(|owner| Term::Owner(owner.uid.to_owned()));
        let indexed = self.indexes.iter().flat_map(|index| {
            cache.index_values(index, object).into_iter().map(|value| Term::indexed(index, &value))
        });
        namespace.into_iter().chain(owners).chain(indexed).collect()
    }
}
