//! The changes of a write.

use super::{
    IndexFn, ObjectRef, ReflectorId,
    copies::{OperationLog, Replica},
    first_list::Staged,
    memory::Accounting,
    packer::{Packer, compress},
    postings::Slot,
    query::WantedIndexes,
    state::{Operation, State, name_hash},
    writer::WriterState,
};
use crate::{Delta, RawObject, scan::ScanError};

/// Changes of a store that become visible together.
#[derive(Debug)]
pub struct StoreTransaction<'a> {
    /// The hidden copy.
    state: &'a mut State,
    log: &'a mut OperationLog<Operation>,
    writer: &'a mut WriterState,
    accounting: &'a Accounting,
    deltas: Vec<Delta>,
    loaded: Option<Vec<RawObject>>,
}

impl<'a> StoreTransaction<'a> {
    pub(super) fn new(
        state: &'a mut State,
        log: &'a mut OperationLog<Operation>,
        writer: &'a mut WriterState,
        accounting: &'a Accounting,
    ) -> Self {
        Self { state, log, writer, accounting, deltas: Vec::new(), loaded: None }
    }

    /// Takes the changes so far, in order. The objects of [`Self::take_loaded`] are not included.
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// Takes the objects of the first list of an empty store, after the end of the list. These objects
    /// precede all deltas.
    pub fn take_loaded(&mut self) -> Option<Vec<RawObject>> {
        self.loaded.take()
    }

    /// Begins a list of a source. [`Self::sweep`] ends the list and removes the objects of the source that
    /// the list has not shown.
    pub fn begin_list(&mut self, source: ReflectorId) {
        self.stage_blocking(source);
        self.writer.first_lists.begin(source, self.state.slots() == 0);
        if self.writer.first_lists.is_direct() {
            self.writer.unlogged = true;
        }
        let epoch = self.writer.epochs.entry(source).or_default();
        *epoch = epoch.wrapping_add(1);
    }

    /// Moves the first list of another source out of the hidden copy, so that this source can publish.
    fn stage_blocking(&mut self, source: ReflectorId) {
        if self.writer.first_lists.blocks(source) {
            self.stage_direct();
        }
    }

    fn stage_direct(&mut self) {
        let objects = self.state.iter().cloned().collect();
        self.writer.first_lists.stage_direct(objects);
        self.state.clear();
        self.writer.free.clear();
        self.writer.bytes = 0;
        self.writer.unlogged = false;
    }

    /// Returns whether the changes of a source are staged until the end of the source's first list.
    #[inline]
    fn is_staged(&mut self, source: ReflectorId) -> bool {
        if self.writer.first_lists.is_idle() {
            return false;
        }
        self.stage_blocking(source);
        self.writer.first_lists.is_staged(source)
    }

    /// Applies the staged changes of a first list.
    fn apply_staged(&mut self, source: ReflectorId, staged: Vec<Staged>) {
        // From this size on, cloning the other copy is cheaper than repeating each operation on it.
        let bulk = staged.len() > self.state.len();
        if bulk {
            self.writer.unlogged = true;
        }
        for change in staged {
            match change {
                Staged::Upsert { object, initial } => {
                    let seen = ObjectRef::of(source, &object);
                    // Cannot fail: the object exists.
                    let _ = self.upsert_now(seen, initial, |_| Ok(object.clone()));
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
        self.writer.unlogged = false;
        self.state.shrink();
        self.log.push_everything();
    }

    /// Ends a list. Removes the objects of the source that the list has not shown.
    pub fn sweep(&mut self, source: ReflectorId) {
        self.stage_blocking(source);
        let staged = self.writer.first_lists.end(source);
        self.apply_staged(source, staged);
        let mark = self.writer.mark(source);
        for slot in 0..self.state.slots() as Slot {
            let seen = self.writer.marks[slot as usize];
            if seen.source == source && seen != mark && self.state.at(slot).is_some() {
                self.remove_slot(slot, None);
            }
        }
        if self.writer.first_lists.end_direct(source) {
            self.publish_everything();
            self.loaded = Some(self.state.iter().cloned().collect());
        }
    }

    /// Inserts or updates an object. `make` gets the stored object. An object with the uid, resource version
    /// and content of the stored object causes no change.
    ///
    /// The resource version alone is not compared: after a change of a CRD's conversion, defaults or pruning, the server serves
    /// other content at the same resource version.
    ///
    /// # Errors
    /// The error of `make`. The stored object is unchanged.
    pub fn upsert(
        &mut self,
        seen: ObjectRef<'_>,
        initial: bool,
        make: impl FnOnce(Option<&RawObject>) -> Result<RawObject, ScanError>,
    ) -> Result<(), ScanError> {
        if self.is_staged(seen.source) {
            let object = make(None)?;
            self.writer.first_lists.push(seen.source, Staged::Upsert { object, initial });
            return Ok(());
        }
        self.upsert_now(seen, initial, make)
    }

    fn upsert_now(
        &mut self,
        seen: ObjectRef<'_>,
        initial: bool,
        make: impl FnOnce(Option<&RawObject>) -> Result<RawObject, ScanError>,
    ) -> Result<(), ScanError> {
        let hash = name_hash(self.state.hasher(), seen.namespace, seen.name);
        let mark = self.writer.mark(seen.source);
        let Some(slot) = self.state.find(hash, seen.namespace, seen.name) else {
            let object = self.writer.pack(make(None)?);
            let slot = self.writer.take_slot(self.state.slots());
            self.writer.marks[slot as usize] = mark;
            self.insert(hash, slot, &object);
            self.push_delta(|| Delta::Added { object, initial });
            self.pack_rest();
            return Ok(());
        };
        self.writer.marks[slot as usize] = mark;
        let Some(old) = self.state.at(slot) else { return Ok(()) };
        let same_uid = old.uid_bytes() == seen.uid;
        let same_version = same_uid
            && !seen.resource_version.is_empty()
            && old.resource_version_bytes() == seen.resource_version;
        let new = make(Some(old))?;
        if same_version && old.has_same_content(&new) {
            return Ok(());
        }
        let old = old.clone();
        let new = self.writer.pack(new);
        self.replace(slot, &old, &new);
        if same_uid {
            self.push_delta(|| Delta::Updated { old, new });
        } else {
            self.push_delta(|| Delta::Deleted { last: old, final_state_unknown: true });
            self.push_delta(|| Delta::Added { object: new, initial });
        }
        Ok(())
    }

    /// Adds a delta, unless the store has not published anything yet.
    fn push_delta(&mut self, delta: impl FnOnce() -> Delta) {
        if !self.writer.first_lists.is_direct() {
            self.deltas.push(delta());
        }
    }

    /// Compresses the objects that were inserted before a dictionary was trained.
    fn pack_rest(&mut self) {
        let Some(compressor) = self.writer.packer.as_mut().and_then(Packer::take_trained) else { return };
        self.accounting.add_dictionary(compressor.dictionary());
        for slot in 0..self.state.slots() as Slot {
            let Some(object) = self.state.at(slot).filter(|object| !object.is_compressed()) else { continue };
            let Some(packed) = compress(object, &compressor) else { continue };
            self.writer.bytes = self.writer.bytes + packed.memory() - object.memory();
            self.apply(Operation::Replace { slot, object: packed });
        }
    }

    /// Marks an unreadable object as shown by the current list: [`Self::sweep`] keeps the object.
    pub fn keep(&mut self, source: ReflectorId, namespace: Option<&str>, name: &str) {
        if let Some(slot) = self.find(namespace, name) {
            self.writer.marks[slot as usize] = self.writer.mark(source);
        }
    }

    /// Marks all objects of a source as shown by the current list.
    pub fn keep_all(&mut self, source: ReflectorId) {
        let mark = self.writer.mark(source);
        self.writer.marks.iter_mut().filter(|seen| seen.source == source).for_each(|seen| *seen = mark);
    }

    /// Removes an object. `last` is the final state, if known.
    pub fn remove(
        &mut self,
        source: ReflectorId,
        namespace: Option<&str>,
        name: &str,
        last: Option<RawObject>,
    ) {
        if self.is_staged(source) {
            let namespace = namespace.unwrap_or_default().into();
            let staged = Staged::Remove { namespace, name: name.into(), last };
            return self.writer.first_lists.push(source, staged);
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
        self.values(slot, Some(&old), None);
        let hash = name_hash(self.state.hasher(), old.namespace_bytes(), old.name_bytes());
        self.apply(Operation::Remove { hash, slot });
        self.writer.bytes -= old.memory();
        self.writer.free.push(slot);
        let final_state_unknown = last.is_none();
        self.push_delta(|| Delta::Deleted { last: last.unwrap_or(old), final_state_unknown });
    }

    fn insert(&mut self, hash: u64, slot: Slot, object: &RawObject) {
        self.writer.bytes += object.memory();
        self.apply(Operation::Insert { hash, slot, object: object.clone() });
        self.values(slot, None, Some(object));
    }

    fn replace(&mut self, slot: Slot, old: &RawObject, new: &RawObject) {
        self.writer.bytes = self.writer.bytes + new.memory() - old.memory();
        self.apply(Operation::Replace { slot, object: new.clone() });
        self.values(slot, Some(old), Some(new));
    }

    /// Moves an object from the old values to the new values in each named index.
    fn values(&mut self, slot: Slot, old: Option<&RawObject>, new: Option<&RawObject>) {
        for index in 0..self.writer.functions.len() {
            self.values_of(index, slot, old, new);
        }
    }

    fn values_of(&mut self, index: usize, slot: Slot, old: Option<&RawObject>, new: Option<&RawObject>) {
        let function = self.writer.functions[index].clone();
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
        if !self.writer.index_panics.iter().any(|(known, _)| known == name) {
            self.writer.index_panics.push((name.to_owned(), object.key()));
        }
    }

    pub(super) fn add_index(&mut self, name: &str, function: IndexFn) -> bool {
        if self.state.index(name).is_ok() {
            return false;
        }
        // The index is published at once, but the first list is not.
        if self.writer.first_lists.is_direct() {
            self.stage_direct();
        }
        self.apply(Operation::AddIndex { name: name.into() });
        self.writer.functions.push(function);
        let index = self.writer.functions.len() - 1;
        for slot in 0..self.state.slots() as Slot {
            let object = self.state.at(slot).cloned();
            self.values_of(index, slot, None, object.as_ref());
        }
        true
    }

    /// Adds the indexes that queries want, unless a first list is in progress in the hidden copy, or may begin with this write.
    pub(super) fn add_wanted(&mut self, wanted: &WantedIndexes) {
        if self.state.slots() > 0 && !self.writer.first_lists.is_direct() {
            let missing = wanted.missing_in(self.state);
            missing.into_iter().for_each(|kind| self.apply(Operation::IndexTerms { kind }));
        }
    }

    fn apply(&mut self, operation: Operation) {
        if !self.writer.unlogged {
            self.log.push(operation.clone());
        }
        self.state.apply(operation);
    }
}
