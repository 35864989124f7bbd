//! A copy of the store's state.

use std::{
    hash::{BuildHasher, BuildHasherDefault, Hash},
    sync::Arc,
};

use hashbrown::{HashMap, HashTable, hash_map::Entry};

use super::{
    UnknownIndex,
    copies::Replica,
    postings::{Postings, Slot},
};
use crate::RawObject;

pub(super) type Hasher = foldhash::fast::RandomState;

/// Objects by slot, a table from names to slots, and indexes from values to slots.
#[derive(Clone, Debug)]
pub(super) struct State {
    hasher: Hasher,
    slots: Vec<Option<RawObject>>,
    names: HashTable<Name>,
    /// The terms that are indexed: those of earlier queries.
    term_kinds: Vec<TermKind>,
    /// By the hash of a term. A collision adds slots, and the query then rejects the objects of these slots.
    terms: HashMap<u64, Postings, BuildHasherDefault<Identity>>,
    indexes: Vec<NamedIndex>,
}

#[derive(Clone, Copy, Debug)]
struct Name {
    hash: u32,
    slot: Slot,
}

#[derive(Clone, Debug)]
pub(super) struct NamedIndex {
    pub(super) name: Arc<str>,
    pub(super) values: HashMap<Arc<str>, Postings, Hasher>,
}

/// A change that is applied to both copies of the state.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Insert { hash: u64, slot: Slot, object: RawObject },
    Replace { slot: Slot, object: RawObject },
    Remove { hash: u64, slot: Slot },
    IndexTerms { kind: TermKind },
    AddIndex { name: Arc<str> },
    PostValue { index: usize, value: Arc<str>, slot: Slot },
    UnpostValue { index: usize, value: Arc<str>, slot: Slot },
}

/// A value by which a query selects objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term<'a> {
    Namespace(&'a [u8]),
    Owner(&'a [u8]),
    Label(&'a [u8], &'a [u8]),
}

/// The terms that an index has: those of all namespaces, of all owners, or of the values of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TermKind {
    Namespace,
    Owner,
    Label(Arc<[u8]>),
}

impl TermKind {
    pub(super) fn of(term: Term<'_>) -> Self {
        match term {
            Term::Namespace(_) => Self::Namespace,
            Term::Owner(_) => Self::Owner,
            Term::Label(key, _) => Self::Label(key.into()),
        }
    }

    fn contains(&self, term: Term<'_>) -> bool {
        match (self, term) {
            (Self::Namespace, Term::Namespace(_)) | (Self::Owner, Term::Owner(_)) => true,
            (Self::Label(key), Term::Label(other, _)) => **key == *other,
            _ => false,
        }
    }

    /// Returns the terms of this kind that an object has.
    fn terms<'a>(&'a self, object: Option<&'a RawObject>) -> impl Iterator<Item = Term<'a>> {
        object.into_iter().flat_map(|object| self.terms_of(object))
    }

    fn terms_of<'a>(&'a self, object: &'a RawObject) -> impl Iterator<Item = Term<'a>> {
        let namespace = (*self == Self::Namespace).then(|| object.namespace_bytes());
        let namespace = namespace.filter(|namespace| !namespace.is_empty()).map(Term::Namespace);
        let owners = (*self == Self::Owner).then(|| object.owner_uids().map(Term::Owner));
        let label = match self {
            Self::Label(key) => object.label_bytes().find(|(name, _)| **name == **key),
            _ => None,
        };
        let label = label.map(|(key, value)| Term::Label(key, value));
        namespace.into_iter().chain(owners.into_iter().flatten()).chain(label)
    }
}

/// Returns the hash of a key. The namespace is empty for a cluster-scoped object.
pub(super) fn name_hash(hasher: &Hasher, namespace: &[u8], name: &[u8]) -> u64 {
    hasher.hash_one((namespace, name))
}

impl State {
    pub(super) fn new(hasher: Hasher) -> Self {
        Self {
            hasher,
            slots: Vec::new(),
            names: HashTable::new(),
            term_kinds: Vec::new(),
            terms: HashMap::default(),
            indexes: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the number of slots, free ones included.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Frees unused memory after the insertion of many objects.
    pub(super) fn shrink(&mut self) {
        self.slots.shrink_to_fit();
    }

    /// Removes all objects. The indexes stay.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.names.clear();
        self.terms.clear();
        self.indexes.iter_mut().for_each(|index| index.values.clear());
    }

    pub(super) fn find(&self, hash: u64, namespace: &[u8], name: &[u8]) -> Option<Slot> {
        let is_wanted = |entry: &Name| {
            entry.hash == hash as u32
                && self.at(entry.slot).is_some_and(|object| object.is_named(namespace, name))
        };
        self.names.find(spread(hash as u32), is_wanted).map(|name| name.slot)
    }

    pub(super) fn at(&self, slot: Slot) -> Option<&RawObject> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn get(&self, namespace: &[u8], name: &[u8]) -> Option<&RawObject> {
        self.at(self.find_object(namespace, name)?)
    }

    pub(super) fn find_object(&self, namespace: &[u8], name: &[u8]) -> Option<Slot> {
        self.find(name_hash(&self.hasher, namespace, name), namespace, name)
    }

    /// Returns the objects with slots.
    pub(super) fn occupied(&self) -> impl Iterator<Item = (Slot, &RawObject)> {
        (0..).zip(&self.slots).filter_map(|(slot, object)| Some((slot, object.as_ref()?)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RawObject> {
        self.slots.iter().flatten()
    }

    /// Returns the number of the indexes over namespaces, owners and labels.
    pub(super) fn index_count(&self) -> usize {
        self.term_kinds.len()
    }

    pub(super) fn has_index(&self, kind: &TermKind) -> bool {
        self.term_kinds.contains(kind)
    }

    /// Returns whether there is an index of a term and of all terms of the kind.
    pub(super) fn has_index_of(&self, term: Term<'_>) -> bool {
        self.term_kinds.iter().any(|kind| kind.contains(term))
    }

    /// Returns the objects with a term that is indexed.
    pub(super) fn term(&self, term: Term<'_>) -> Option<&Postings> {
        self.terms.get(&self.hasher.hash_one(term))
    }

    /// Moves an object from the terms of the old state to the terms of the new state.
    fn move_terms(&mut self, slot: Slot, old: Option<&RawObject>, new: Option<&RawObject>) {
        let Self { term_kinds, terms, hasher, .. } = self;
        for kind in &*term_kinds {
            if kind.terms(old).eq(kind.terms(new)) {
                continue;
            }
            kind.terms(old).for_each(|term| unpost(terms, &hasher.hash_one(term), slot));
            kind.terms(new).for_each(|term| post(terms.entry(hasher.hash_one(term)), slot));
        }
    }

    pub(super) fn index(&self, name: &str) -> Result<&NamedIndex, UnknownIndex> {
        let known = || self.indexes.iter().map(|index| index.name.to_string()).collect();
        let found = self.indexes.iter().find(|index| &*index.name == name);
        found.ok_or_else(|| UnknownIndex::new(name, known()))
    }

    /// Returns the number of named indexes.
    pub(super) fn indexes(&self) -> usize {
        self.indexes.len()
    }

    pub(super) fn index_name(&self, index: usize) -> &str {
        &self.indexes[index].name
    }

    pub(super) fn index_values(&self, name: &str) -> Result<Vec<String>, UnknownIndex> {
        let mut values: Vec<_> = self.index(name)?.values.keys().map(ToString::to_string).collect();
        values.sort_unstable();
        Ok(values)
    }

    /// Estimates the bytes of the tables, without the objects.
    pub(super) fn index_memory(&self) -> usize {
        self.slots.capacity() * size_of::<Option<RawObject>>()
            + self.names.capacity() * (size_of::<Name>() + 1)
            + self.terms.capacity() * (size_of::<(u64, Postings)>() + 1)
            + self.indexes.iter().map(|index| index.values.capacity() * 48).sum::<usize>()
    }
}

impl Replica for State {
    type Operation = Operation;

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Insert { hash, slot, object } => {
                self.move_terms(slot, None, Some(&object));
                let name = Name { hash: hash as u32, slot };
                self.names.insert_unique(spread(name.hash), name, |name| spread(name.hash));
                if slot as usize >= self.slots.len() {
                    self.slots.resize(slot as usize + 1, None);
                }
                self.slots[slot as usize] = Some(object);
            }
            Operation::Replace { slot, object } => {
                let old = self.slots[slot as usize].take();
                self.move_terms(slot, old.as_ref(), Some(&object));
                self.slots[slot as usize] = Some(object);
            }
            Operation::Remove { hash, slot } => {
                if let Ok(entry) = self.names.find_entry(spread(hash as u32), |name| name.slot == slot) {
                    entry.remove();
                }
                let old = self.slots[slot as usize].take();
                self.move_terms(slot, old.as_ref(), None);
            }
            Operation::IndexTerms { kind } => {
                let Self { terms, hasher, slots, .. } = self;
                for (slot, object) in (0..).zip(&*slots) {
                    kind.terms(object.as_ref())
                        .for_each(|term| post(terms.entry(hasher.hash_one(term)), slot));
                }
                self.term_kinds.push(kind);
            }
            Operation::AddIndex { name } => {
                self.indexes.push(NamedIndex { name, values: HashMap::with_hasher(self.hasher.clone()) });
            }
            Operation::PostValue { index, value, slot } => {
                post(self.indexes[index].values.entry(value), slot);
            }
            Operation::UnpostValue { index, value, slot } => {
                unpost(&mut self.indexes[index].values, &value, slot);
            }
        }
    }
}

fn post<K: Hash + Eq>(entry: Entry<'_, K, Postings, impl BuildHasher>, slot: Slot) {
    match entry {
        Entry::Occupied(mut postings) => postings.get_mut().insert(slot),
        Entry::Vacant(vacant) => {
            vacant.insert(Postings::One(slot));
        }
    }
}

fn unpost<K: Hash + Eq>(all: &mut HashMap<K, Postings, impl BuildHasher>, value: &K, slot: Slot) {
    if all.get_mut(value).is_some_and(|postings| postings.remove(slot)) {
        all.remove(value);
    }
}

/// Spreads 32 bits over 64: the table takes the bucket from the low bits and the tag from the high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A hasher for keys that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct Identity(u64);

impl std::hash::Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, label: &str) -> RawObject {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"n","labels":{{"app":"{label}"}},"ownerReferences":[{{"uid":"{label}"}}]}}}}"#
        );
        RawObject::from_json(json.as_bytes()).expect("an object")
    }

    /// A term without objects would stay in memory forever, because a query rejects objects without the term.
    #[test]
    fn terms_are_removed_with_their_last_object() {
        let mut state = State::new(Hasher::default());
        for (slot, name) in (0..).zip(["a", "b", "c"]) {
            let hash = name_hash(state.hasher(), b"n", name.as_bytes());
            state.apply(Operation::Insert { hash, slot, object: object(name, "x") });
        }
        let kinds = [TermKind::Namespace, TermKind::Owner, TermKind::Label((*b"app").into())];
        kinds.into_iter().for_each(|kind| state.apply(Operation::IndexTerms { kind }));
        assert_eq!(state.terms.len(), 3);
        state.apply(Operation::Replace { slot: 1, object: object("b", "y") });
        assert_eq!(state.term(Term::Label(b"app", b"y")).map(Postings::len), Some(1));
        assert_eq!(state.term(Term::Owner(b"x")).map(Postings::len), Some(2));
        for (slot, name) in (0..).zip(["a", "b", "c"]) {
            let hash = name_hash(state.hasher(), b"n", name.as_bytes());
            state.apply(Operation::Remove { hash, slot });
        }
        assert_eq!((state.terms.len(), state.len()), (0, 0));
    }
}
