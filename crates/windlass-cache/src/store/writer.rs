//! The one who changes a store.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    IndexFn, Shared, Tier,
    copies::{Log, Replica},
    first_list::{FirstLists, Staged},
    memory::Accounting,
    packer::Packer,
    postings::Slot,
    state::{Operation, State, Term, name_hash, term_hash},
};
use crate::{
    Delta, ObjectKey, RawObject,
    scan::{ScanError, Scanned},
};

/// What a store is to do.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// How objects are kept.
    pub tier: Tier,
    /// Named indexes.
    pub indexes: BTreeMap<String, IndexFn>,
    /// About how many bytes decoded objects may take, of each type that is read.
    pub memo_bytes: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { tier: Tier::default(), indexes: BTreeMap::new(), memo_bytes: 16 << 20 }
    }
}

/// One of the watches that feed a store: a cache of several namespaces has one for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u16);

/// The names of an object that a watch or a list has shown.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    source: SourceId,
    /// Empty for what is in none.
    namespace: &'a [u8],
    name: &'a [u8],
    uid: &'a [u8],
    resource_version: &'a [u8],
}

impl<'a> Sighting<'a> {
    /// A watch has shown this object.
    pub fn of(source: SourceId, object: &'a RawObject) -> Self {
        Self {
            source,
            namespace: object.namespace_bytes(),
            name: object.name_bytes(),
            uid: object.uid_bytes(),
            resource_version: object.resource_version_bytes(),
        }
    }

    /// The same of an object that has not been copied; `None` when it has no name.
    pub(crate) fn of_scanned(source: SourceId, object: &Scanned<'a>) -> Option<Self> {
        Some(Self {
            source,
            namespace: object.namespace_bytes(),
            name: object.name_bytes()?,
            uid: object.uid_bytes(),
            resource_version: object.resource_version_bytes(),
        })
    }
}

/// Changes a store. There is one for each.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    log: Log<Operation>,
    book: Book,
    /// A write is under way, or has panicked.
    torn: bool,
}

/// What only the writer needs to know.
#[derive(Debug)]
struct Book {
    functions: Vec<IndexFn>,
    /// When each slot was last seen, and by whom.
    marks: Vec<Mark>,
    free: Vec<Slot>,
    /// The current list of each source.
    epochs: BTreeMap<SourceId, u16>,
    packer: Option<Packer>,
    bytes: usize,
    first_lists: FirstLists,
    /// Operations are not logged: the other copy is made anew.
    unlogged: bool,
    /// Objects for which an index function has panicked, and the index. At most one for each index.
    index_panics: Vec<(String, ObjectKey)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    source: SourceId,
    epoch: u16,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, options: StoreOptions) -> Self {
        let packer = (options.tier == Tier::Compressed).then(Packer::default);
        let book = Book {
            functions: Vec::new(),
            marks: Vec::new(),
            free: Vec::new(),
            epochs: BTreeMap::new(),
            packer,
            bytes: 0,
            first_lists: FirstLists::default(),
            unlogged: false,
            index_panics: Vec::new(),
        };
        let mut writer = Self { shared, log: Log::new(), book, torn: false };
        for (name, function) in options.indexes {
            writer.add_index(&name, function);
        }
        writer
    }

    /// Whether a first list goes straight into the hidden copy: nothing has been published before it ends.
    pub(crate) fn is_loading(&self) -> bool {
        self.book.first_lists.is_direct()
    }

    /// The objects for which an index function has panicked since the last call, with the name of the index. There is at
    /// most one for each index.
    pub fn take_index_panics(&mut self) -> Vec<(String, ObjectKey)> {
        std::mem::take(&mut self.book.index_panics)
    }

    /// Sets the bytes that the objects share, for [`Store::memory`](crate::Store::memory): what is shared belongs to the
    /// scanners.
    pub fn set_shapes_memory(&mut self, bytes: usize) {
        self.shared.accounting.set_shapes(bytes);
    }

    /// Adds a named index over all objects, or replaces nothing when it is there already.
    pub fn add_index(&mut self, name: &str, function: IndexFn) -> bool {
        self.write(|transaction| transaction.add_index(name, function))
    }

    /// Changes the store. Readers see all of the changes at once, when `change` has returned; those of the first list of a
    /// source, from [`Transaction::begin_list`] on, when it has ended by [`Transaction::sweep`].
    ///
    /// When `change` panics, readers see none of its changes, and the next write begins with what readers see. The source
    /// that was written must begin a new list.
    pub fn write<R>(&mut self, change: impl FnOnce(&mut Transaction<'_>) -> R) -> R {
        let torn = std::mem::replace(&mut self.torn, true);
        if torn {
            self.log.discard();
        }
        let (book, accounting) = (&mut self.book, &self.shared.accounting);
        let answer = self.shared.copies.write(&mut self.log, |state, log| {
            if torn {
                book.rebuild(state);
            }
            change(&mut Transaction { state, log, book, accounting, deltas: Vec::new(), loaded: None })
        });
        self.torn = false;
        self.book.first_lists.commit();
        self.shared.accounting.set_objects(self.book.bytes + self.book.first_lists.bytes());
        answer
    }
}

/// Changes that become visible together.
#[derive(Debug)]
pub struct Transaction<'a> {
    state: &'a mut State,
    log: &'a mut Log<Operation>,
    book: &'a mut Book,
    accounting: &'a Accounting,
    deltas: Vec<Delta>,
    loaded: Option<Vec<RawObject>>,
}

impl Transaction<'_> {
    /// What has changed so far, in order; without the objects of [`Self::take_loaded`].
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// The objects of the first list of an empty store, when it has just ended. They come before all deltas.
    pub fn take_loaded(&mut self) -> Option<Vec<RawObject>> {
        self.loaded.take()
    }

    /// Begins a list of a source: what it does not show until [`Self::sweep`] is gone.
    pub fn begin_list(&mut self, source: SourceId) {
        self.stage_blocking(source);
        self.book.first_lists.begin(source, self.state.slots() == 0);
        if self.book.first_lists.is_direct() {
            self.book.unlogged = true;
            self.state.load();
        }
        let epoch = self.book.epochs.entry(source).or_default();
        *epoch = epoch.wrapping_add(1);
    }

    /// Takes the first list of another source out of the hidden copy, so that this source can publish.
    fn stage_blocking(&mut self, source: SourceId) {
        if self.book.first_lists.blocks(source) {
            self.stage_direct();
        }
    }

    fn stage_direct(&mut self) {
        let objects = self.state.iter().cloned().collect();
        self.book.first_lists.stage_direct(objects);
        self.state.clear();
        self.book.free.clear();
        self.book.bytes = 0;
        self.book.unlogged = false;
    }

    /// Whether the first list of a source is kept aside.
    #[inline]
    fn is_staged(&mut self, source: SourceId) -> bool {
        if self.book.first_lists.is_idle() {
            return false;
        }
        self.stage_blocking(source);
        self.book.first_lists.is_staged(source)
    }

    /// Applies a first list that was kept aside.
    fn apply_staged(&mut self, source: SourceId, staged: Vec<Staged>) {
        // Beyond this the other copy is cheaper to copy than to change.
        let bulk = staged.len() > self.state.len();
        if bulk {
            self.book.unlogged = true;
            self.state.load();
        }
        for change in staged {
            match change {
                Staged::Upsert { object, initial } => {
                    let seen = Sighting::of(source, &object);
                    // Making the object has succeeded already.
                    let _ = self.upsert_now(seen, initial, || Ok(object.clone()));
                }
                Staged::Remove { namespace, name, last } => {
                    self.remove_now(Some(&*namespace), &name, last);
                }
            }
        }
        if bulk {
            self.publish_everything();
        }
    }

    fn publish_everything(&mut self) {
        self.book.unlogged = false;
        self.state.settle();
        self.log.push_everything();
    }

    /// Ends a list: removes what it has not shown.
    pub fn sweep(&mut self, source: SourceId) {
        self.stage_blocking(source);
        let staged = self.book.first_lists.end(source);
        self.apply_staged(source, staged);
        let mark = self.book.mark(source);
        for slot in 0..self.state.slots() as Slot {
            let seen = self.book.marks[slot as usize];
            if seen.source == source && seen != mark && self.state.at(slot).is_some() {
                self.remove_slot(slot, None);
            }
        }
        if self.book.first_lists.end_direct(source) {
            self.publish_everything();
            self.loaded = Some(self.state.iter().cloned().collect());
        }
    }

    /// An object as it is. It is made only when the store has it not, or at another resourceVersion.
    pub fn upsert(
        &mut self,
        seen: Sighting<'_>,
        initial: bool,
        make: impl FnOnce() -> Result<RawObject, ScanError>,
    ) -> Result<(), ScanError> {
        if self.is_staged(seen.source) {
            let object = make()?;
            self.book.first_lists.push(seen.source, Staged::Upsert { object, initial });
            return Ok(());
        }
        self.upsert_now(seen, initial, make)
    }

    fn upsert_now(
        &mut self,
        seen: Sighting<'_>,
        initial: bool,
        make: impl FnOnce() -> Result<RawObject, ScanError>,
    ) -> Result<(), ScanError> {
        let hash = name_hash(self.state.hasher(), seen.namespace, seen.name);
        let mark = self.book.mark(seen.source);
        let Some(slot) = self.state.find(hash, seen.namespace, seen.name) else {
            let object = self.book.pack(make()?);
            let slot = self.book.take_slot(self.state.slots());
            self.book.marks[slot as usize] = mark;
            self.enter(hash, slot, &object);
            self.tell(|| Delta::Added { object, initial });
            self.pack_rest();
            return Ok(());
        };
        self.book.marks[slot as usize] = mark;
        let Some(old) = self.state.at(slot) else { return Ok(()) };
        let same_uid = old.uid_bytes() == seen.uid;
        if same_uid
            && !seen.resource_version.is_empty()
            && old.resource_version_bytes() == seen.resource_version
        {
            return Ok(());
        }
        let old = old.clone();
        let new = self.book.pack(make()?);
        self.replace(slot, &old, &new);
        if same_uid {
            self.tell(|| Delta::Updated { old, new });
        } else {
            self.tell(|| Delta::Deleted { last: old, final_state_unknown: true });
            self.tell(|| Delta::Added { object: new, initial });
        }
        Ok(())
    }

    /// Notes a change of what readers have seen.
    fn tell(&mut self, delta: impl FnOnce() -> Delta) {
        if !self.book.first_lists.is_direct() {
            self.deltas.push(delta());
        }
    }

    /// Compresses the objects that came before there was a dictionary, once there is one.
    fn pack_rest(&mut self) {
        let Some(dictionary) = self.book.packer.as_mut().and_then(Packer::take_trained) else { return };
        self.accounting.add_dictionary(&dictionary);
        for slot in 0..self.state.slots() as Slot {
            let Some(object) = self.state.at(slot).filter(|object| !object.is_compressed()) else { continue };
            let Some(packed) = object.compress(&dictionary) else { continue };
            self.book.bytes = self.book.bytes + packed.memory() - object.memory();
            self.apply(Operation::Put { slot, object: packed });
        }
    }

    /// Marks an object as shown by the list although it could not be read, so that it is not taken for gone.
    pub fn keep(&mut self, source: SourceId, namespace: Option<&str>, name: &str) {
        if let Some(slot) = self.find(namespace, name) {
            self.book.marks[slot as usize] = self.book.mark(source);
        }
    }

    /// Marks everything of a source as shown by the list.
    pub fn keep_all(&mut self, source: SourceId) {
        let mark = self.book.mark(source);
        self.book.marks.iter_mut().filter(|seen| seen.source == source).for_each(|seen| *seen = mark);
    }

    /// An object is gone. `last` is its final state when that is known.
    pub fn remove(&mut self, source: SourceId, namespace: Option<&str>, name: &str, last: Option<RawObject>) {
        if self.is_staged(source) {
            let namespace = namespace.unwrap_or_default().into();
            let staged = Staged::Remove { namespace, name: name.into(), last };
            return self.book.first_lists.push(source, staged);
        }
        self.remove_now(namespace, name, last);
    }

    fn remove_now(&mut self, namespace: Option<&str>, name: &str, last: Option<RawObject>) {
        if let Some(slot) = self.find(namespace, name) {
            self.remove_slot(slot, last);
        }
    }

    fn find(&self, namespace: Option<&str>, name: &str) -> Option<Slot> {
        let (namespace, name) = (namespace.unwrap_or_default().as_bytes(), name.as_bytes());
        self.state.find(name_hash(self.state.hasher(), namespace, name), namespace, name)
    }

    fn remove_slot(&mut self, slot: Slot, last: Option<RawObject>) {
        let Some(old) = self.state.at(slot).cloned() else { return };
        self.terms(slot, &old, false);
        self.values(slot, Some(&old), None);
        let hash = name_hash(self.state.hasher(), old.namespace_bytes(), old.name_bytes());
        self.apply(Operation::Remove { hash, slot });
        self.book.bytes -= old.memory();
        self.book.free.push(slot);
        let final_state_unknown = last.is_none();
        self.tell(|| Delta::Deleted { last: last.unwrap_or(old), final_state_unknown });
    }

    fn enter(&mut self, hash: u64, slot: Slot, object: &RawObject) {
        self.book.bytes += object.memory();
        self.apply(Operation::Put { slot, object: object.clone() });
        self.apply(Operation::Enter { hash, slot });
        self.terms(slot, object, true);
        self.values(slot, None, Some(object));
    }

    fn replace(&mut self, slot: Slot, old: &RawObject, new: &RawObject) {
        self.book.bytes = self.book.bytes + new.memory() - old.memory();
        self.apply(Operation::Put { slot, object: new.clone() });
        if !old.owner_uids().eq(new.owner_uids()) || !old.label_bytes().eq(new.label_bytes()) {
            self.terms(slot, old, false);
            self.terms(slot, new, true);
        }
        self.values(slot, Some(old), Some(new));
    }

    /// Enters an object under its namespace, labels and owners, or takes it out.
    fn terms(&mut self, slot: Slot, object: &RawObject, enter: bool) {
        for term in Term::of(object) {
            let term = term_hash(self.state.hasher(), term);
            self.apply(if enter { Operation::Post { term, slot } } else { Operation::Unpost { term, slot } });
        }
    }

    /// Moves an object from its old values to its new ones, in each named index.
    fn values(&mut self, slot: Slot, old: Option<&RawObject>, new: Option<&RawObject>) {
        for index in 0..self.book.functions.len() {
            self.values_of(index, slot, old, new);
        }
    }

    fn values_of(&mut self, index: usize, slot: Slot, old: Option<&RawObject>, new: Option<&RawObject>) {
        let function = self.book.functions[index].clone();
        let before = old.and_then(|old| function.try_values(old)).unwrap_or_default();
        let after = new.map_or_else(Vec::new, |new| {
            function.try_values(new).unwrap_or_else(|| {
                self.index_panicked(index, new);
                Vec::new()
            })
        });
        for value in before.iter().filter(|value| after.binary_search(value).is_err()) {
            self.apply(Operation::UnpostValue { index, value: value.as_str().into(), slot });
        }
        for value in after.iter().filter(|value| before.binary_search(value).is_err()) {
            self.apply(Operation::PostValue { index, value: value.as_str().into(), slot });
        }
    }

    fn index_panicked(&mut self, index: usize, object: &RawObject) {
        let name = self.state.index_name(index);
        if !self.book.index_panics.iter().any(|(known, _)| known == name) {
            self.book.index_panics.push((name.to_owned(), object.key()));
        }
    }

    fn add_index(&mut self, name: &str, function: IndexFn) -> bool {
        if self.state.index(name).is_ok() {
            return false;
        }
        // The index is published at once, the first list is not.
        if self.book.first_lists.is_direct() {
            self.stage_direct();
        }
        self.apply(Operation::AddIndex { name: name.into() });
        self.book.functions.push(function);
        let index = self.book.functions.len() - 1;
        for slot in 0..self.state.slots() as Slot {
            let object = self.state.at(slot).cloned();
            self.values_of(index, slot, None, object.as_ref());
        }
        true
    }

    fn apply(&mut self, operation: Operation) {
        if !self.book.unlogged {
            self.log.push(operation.clone());
        }
        self.state.apply(operation);
    }
}

impl Book {
    /// Makes everything agree with the state that readers see, after a write that did not end.
    fn rebuild(&mut self, state: &State) {
        let slots = 0..state.slots() as Slot;
        self.free = slots.filter(|&slot| state.at(slot).is_none()).collect();
        self.marks.resize(state.slots(), Mark::default());
        self.functions.truncate(state.indexes());
        self.bytes = state.iter().map(RawObject::memory).sum();
        self.first_lists.roll_back();
        self.unlogged = false;
    }

    fn mark(&self, source: SourceId) -> Mark {
        Mark { source, epoch: self.epochs.get(&source).copied().unwrap_or_default() }
    }

    fn take_slot(&mut self, slots: usize) -> Slot {
        let slot = self.free.pop().unwrap_or(slots as Slot);
        if slot as usize >= self.marks.len() {
            self.marks.resize(slot as usize + 1, Mark::default());
        }
        slot
    }

    fn pack(&mut self, object: RawObject) -> RawObject {
        match &mut self.packer {
            Some(packer) => packer.pack(object),
            None => object,
        }
    }
}
