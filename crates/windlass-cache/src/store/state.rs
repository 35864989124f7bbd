//! A copy of the store's state.

use std::{
    hash::{BuildHasher, BuildHasherDefault},
    sync::Arc,
};

use hashbrown::{HashMap, HashTable};

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
    /// Many objects are being inserted in ascending order of their slots.
    loading: bool,
    slots: Vec<Option<RawObject>>,
    names: HashTable<Name>,
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
    Put { slot: Slot, object: RawObject },
    Enter { hash: u64, slot: Slot },
    Remove { hash: u64, slot: Slot },
    Post { term: u64, slot: Slot },
    Unpost { term: u64, slot: Slot },
    AddIndex { name: Arc<str> },
    PostValue { index: usize, value: Arc<str>, slot: Slot },
    UnpostValue { index: usize, value: Arc<str>, slot: Slot },
}

/// A value that every object is indexed by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Term<'a> {
    Namespace(&'a [u8]),
    Label(&'a [u8], &'a [u8]),
    Owner(&'a [u8]),
}

impl<'a> Term<'a> {
    /// Returns the terms of an object.
    pub(super) fn of(object: &'a RawObject) -> impl Iterator<Item = Self> {
        let namespace = object.namespace_bytes();
        let namespace = (!namespace.is_empty()).then_some(Self::Namespace(namespace)).into_iter();
        let labels = object.label_bytes().map(|(key, value)| Self::Label(key, value));
        namespace.chain(labels).chain(object.owner_uids().map(Self::Owner))
    }
}

pub(super) fn term_hash(hasher: &Hasher, term: Term<'_>) -> u64 {
    match term {
        Term::Namespace(namespace) => hasher.hash_one((0_u8, namespace)),
        Term::Label(key, value) => hasher.hash_one((1_u8, key, value)),
        Term::Owner(uid) => hasher.hash_one((2_u8, uid)),
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
            loading: false,
            slots: Vec::new(),
            names: HashTable::new(),
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

    /// Prepares for the insertion of many objects. Nothing may be read before [`Self::settle`].
    pub(super) fn load(&mut self) {
        self.loading = true;
    }

    /// Ends the insertion of many objects.
    pub(super) fn settle(&mut self) {
        self.loading = false;
        let values = self.indexes.iter_mut().flat_map(|index| index.values.values_mut());
        self.terms.values_mut().chain(values).for_each(Postings::settle);
        self.slots.shrink_to_fit();
    }

    /// Removes all objects. The named indexes stay.
    pub(super) fn clear(&mut self) {
        self.loading = false;
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

    pub(super) fn term(&self, term: Term<'_>) -> Option<&Postings> {
        self.terms.get(&term_hash(&self.hasher, term))
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
            Operation::Put { slot, object } => {
                let slot = slot as usize;
                if slot >= self.slots.len() {
                    self.slots.resize(slot + 1, None);
                }
                self.slots[slot] = Some(object);
            }
            Operation::Enter { hash, slot } => {
                let name = Name { hash: hash as u32, slot };
                self.names.insert_unique(spread(name.hash), name, |name| spread(name.hash));
            }
            Operation::Remove { hash, slot } => {
                if let Ok(entry) = self.names.find_entry(spread(hash as u32), |name| name.slot == slot) {
                    entry.remove();
                }
                self.slots[slot as usize] = None;
            }
            Operation::Post { term, slot } => post(self.terms.entry(term), slot, self.loading),
            Operation::Unpost { term, slot } => {
                if self.terms.get_mut(&term).is_some_and(|postings| postings.remove(slot)) {
                    self.terms.remove(&term);
                }
            }
            Operation::AddIndex { name } => {
                self.indexes.push(NamedIndex { name, values: HashMap::with_hasher(self.hasher.clone()) });
            }
            Operation::PostValue { index, value, slot } => {
                post(self.indexes[index].values.entry(value), slot, self.loading);
            }
            Operation::UnpostValue { index, value, slot } => {
                let values = &mut self.indexes[index].values;
                if values.get_mut(&value).is_some_and(|postings| postings.remove(slot)) {
                    values.remove(&value);
                }
            }
        }
    }
}

fn post<K>(entry: hashbrown::hash_map::Entry<'_, K, Postings, impl BuildHasher>, slot: Slot, loading: bool)
where
    K: std::hash::Hash + Eq,
{
    match entry {
        hashbrown::hash_map::Entry::Occupied(mut postings) if loading => postings.get_mut().append(slot),
        hashbrown::hash_map::Entry::Occupied(mut postings) => postings.get_mut().insert(slot),
        hashbrown::hash_map::Entry::Vacant(vacant) => {
            vacant.insert(Postings::One(slot));
        }
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
