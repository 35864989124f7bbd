//! First lists: objects that a source shows before its first list has ended.
//!
//! A first list becomes visible as a whole: no reader and no handler takes a part of a namespace for all of it. The first list
//! of an empty store goes straight into the hidden copy, which is not published before the list ends. As soon as another
//! source has something to show, and for every other first list, objects are kept aside instead.

use std::collections::{BTreeMap, BTreeSet};

use super::SourceId;
use crate::RawObject;

/// The first lists of all sources.
#[derive(Debug, Default)]
pub(super) struct FirstLists {
    ended: BTreeSet<SourceId>,
    /// Sources whose first list has ended in the write that is under way.
    ending: Vec<SourceId>,
    /// The source whose first list goes straight into the hidden copy.
    direct: Option<SourceId>,
    staged: BTreeMap<SourceId, Vec<Staged>>,
    /// Bytes of the staged objects.
    bytes: usize,
}

/// A change that becomes visible when the first list of its source ends.
#[derive(Debug)]
pub(super) enum Staged {
    Upsert { object: RawObject, initial: bool },
    Remove { namespace: Box<str>, name: Box<str>, last: Option<RawObject> },
}

impl FirstLists {
    /// Begins a list. `empty`: the store has never held an object.
    pub(super) fn begin(&mut self, source: SourceId, empty: bool) {
        if self.direct == Some(source) || self.ended.contains(&source) || self.ending.contains(&source) {
            return;
        }
        if empty && self.direct.is_none() && self.staged.is_empty() {
            self.direct = Some(source);
            return;
        }
        // A list that has failed begins again.
        self.hide(source);
    }

    /// Ends the first list of a source; returns what was kept aside.
    pub(super) fn end(&mut self, source: SourceId) -> Vec<Staged> {
        if !self.ended.contains(&source) {
            self.ending.push(source);
        }
        self.take_staged(source).unwrap_or_default()
    }

    /// Ends the first list in the hidden copy if it is this source's.
    pub(super) fn end_direct(&mut self, source: SourceId) -> bool {
        self.direct.take_if(|direct| *direct == source).is_some()
    }

    /// Notes that the write has been published.
    #[inline]
    pub(super) fn commit(&mut self) {
        if !self.ending.is_empty() {
            self.ended.extend(self.ending.drain(..));
        }
    }

    /// Notes that the write has not been published, and that the hidden copy is lost. Nothing of the sources concerned is shown
    /// until another list has ended.
    pub(super) fn roll_back(&mut self) {
        for source in std::mem::take(&mut self.ending).into_iter().chain(self.direct.take()) {
            self.hide(source);
        }
    }

    /// Keeps aside what a source shows from now on.
    fn hide(&mut self, source: SourceId) {
        self.take_staged(source);
        self.staged.insert(source, Vec::new());
    }

    /// Whether no first list is under way.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.direct.is_none() && self.staged.is_empty()
    }

    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Whether the hidden copy holds a part of the first list of another source.
    pub(super) fn blocks(&self, source: SourceId) -> bool {
        self.direct.is_some_and(|direct| direct != source)
    }

    /// Keeps the objects aside that went into the hidden copy so far.
    pub(super) fn stage_direct(&mut self, objects: Vec<RawObject>) {
        let Some(source) = self.direct.take() else { return };
        self.staged.insert(source, Vec::new());
        objects.into_iter().for_each(|object| {
            self.push(source, Staged::Upsert { object, initial: true });
        });
    }

    pub(super) fn is_staged(&self, source: SourceId) -> bool {
        self.staged.contains_key(&source)
    }

    pub(super) fn push(&mut self, source: SourceId, staged: Staged) {
        self.bytes += staged.memory();
        self.staged.entry(source).or_default().push(staged);
    }

    fn take_staged(&mut self, source: SourceId) -> Option<Vec<Staged>> {
        let staged = self.staged.remove(&source)?;
        self.bytes -= staged.iter().map(Staged::memory).sum::<usize>();
        Some(staged)
    }

    /// Bytes of the staged objects.
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
