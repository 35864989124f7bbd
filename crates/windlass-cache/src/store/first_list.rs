//! First lists: the objects that a source shows before the end of the source's first list.
//!
//! A first list becomes visible as a whole, so that no reader or handler takes a part of a namespace for all of it. The first
//! list of an empty store goes straight into the hidden copy, which is not published before the list ends. All other first
//! lists are staged: their changes wait here. When another source must publish, the list in the hidden copy is staged, too.

use std::collections::{BTreeMap, BTreeSet};

use super::ReflectorId;
use crate::RawObject;

/// The state of the first list of each source.
#[derive(Debug, Default)]
pub(super) struct FirstLists {
    ended: BTreeSet<ReflectorId>,
    /// Sources with a first list that ends in the current write.
    ending: Vec<ReflectorId>,
    /// The source of the first list that goes straight into the hidden copy.
    direct: Option<ReflectorId>,
    staged: BTreeMap<ReflectorId, Vec<Staged>>,
    /// Bytes of the staged objects.
    bytes: usize,
}

/// A change that becomes visible at the end of the source's first list.
#[derive(Debug)]
pub(super) enum Staged {
    Upsert { object: RawObject, initial: bool },
    Remove { namespace: Box<str>, name: Box<str>, last: Option<RawObject> },
}

impl FirstLists {
    /// Begins a list. `empty`: the store has no slots.
    pub(super) fn begin(&mut self, source: ReflectorId, empty: bool) {
        if self.direct == Some(source) || self.ended.contains(&source) || self.ending.contains(&source) {
            return;
        }
        if empty && self.direct.is_none() && self.staged.is_empty() {
            self.direct = Some(source);
            return;
        }
        // A list that failed is repeated.
        self.hide(source);
    }

    /// Ends the first list of a source and returns the staged changes.
    pub(super) fn end(&mut self, source: ReflectorId) -> Vec<Staged> {
        if !self.ended.contains(&source) {
            self.ending.push(source);
        }
        self.take_staged(source).unwrap_or_default()
    }

    /// Ends the first list in the hidden copy. Returns whether the list was this source's list.
    pub(super) fn end_direct(&mut self, source: ReflectorId) -> bool {
        self.direct.take_if(|direct| *direct == source).is_some()
    }

    /// Records that the current write has been published.
    #[inline]
    pub(super) fn commit(&mut self) {
        if !self.ending.is_empty() {
            self.ended.extend(self.ending.drain(..));
        }
    }

    /// Records that the current write has panicked and the hidden copy is lost. Every source that lost a
    /// first list must repeat the list.
    pub(super) fn roll_back(&mut self) {
        for source in std::mem::take(&mut self.ending).into_iter().chain(self.direct.take()) {
            self.hide(source);
        }
    }

    /// Stages the changes of a source from now on.
    fn hide(&mut self, source: ReflectorId) {
        self.take_staged(source);
        self.staged.insert(source, Vec::new());
    }

    /// Returns whether no first list is in progress.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.direct.is_none() && self.staged.is_empty()
    }

    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Returns whether the hidden copy holds a part of the first list of another source.
    pub(super) fn blocks(&self, source: ReflectorId) -> bool {
        self.direct.is_some_and(|direct| direct != source)
    }

    /// Stages the objects that went into the hidden copy so far.
    pub(super) fn stage_direct(&mut self, objects: Vec<RawObject>) {
        let Some(source) = self.direct.take() else { return };
        self.staged.insert(source, Vec::new());
        objects.into_iter().for_each(|object| {
            self.push(source, Staged::Upsert { object, initial: true });
        });
    }

    pub(super) fn is_staged(&self, source: ReflectorId) -> bool {
        self.staged.contains_key(&source)
    }

    pub(super) fn push(&mut self, source: ReflectorId, staged: Staged) {
        self.bytes += staged.memory();
        self.staged.entry(source).or_default().push(staged);
    }

    fn take_staged(&mut self, source: ReflectorId) -> Option<Vec<Staged>> {
        let staged = self.staged.remove(&source)?;
        self.bytes -= staged.iter().map(Staged::memory).sum::<usize>();
        Some(staged)
    }

    /// Returns the bytes of the staged objects.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Staged {
    fn memory(&self) -> usize {
        match self {
            Self::Upsert { object, .. } => object.memory(),
            Self::Remove { .. } => 0,
        }
    }
}
