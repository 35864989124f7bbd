//! Assembles objects from the results of a scan.

use triomphe::ThinArc;

use super::{
    RawObject,
    bases::Bases,
    layout::{BLOCK_DELETION, CONTROLLER, IndexFacts, Span},
};
use crate::scan::{Field, Index, ScanOptions, Text};

/// Assembles objects, and reuses the working memory.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// The members `apiVersion` and `kind`, for objects without these members.
    type_members: Vec<u8>,
    object: NewObject,
    sharing: Sharing,
}

/// An object that is not stored yet. The memory is reused for the next object.
#[derive(Debug, Default)]
pub(crate) struct NewObject {
    /// The JSON, and after it indexed texts that the JSON does not contain literally.
    pub(super) bytes: Vec<u8>,
    /// The spans of the indexed texts, in the order of [`Layout::texts`](super::layout::Layout::texts).
    pub(super) texts: Vec<Span>,
    pub(super) facts: IndexFacts,
}

impl NewObject {
    pub(super) fn json(&self) -> &[u8] {
        &self.bytes[..self.facts.json_length]
    }

    pub(crate) fn json_length(&self) -> usize {
        self.facts.json_length
    }

    /// Returns the text of a metadata field; empty if the object does not have the field.
    pub(crate) fn field(&self, field: Field) -> &[u8] {
        self.texts.get(field as usize).map_or(&[], |text| text.text(&self.bytes, &[]))
    }
}

/// Stores objects of a kind that other code has read.
#[derive(Debug)]
pub(crate) struct Sharing {
    /// The bases of earlier objects, if the objects share text.
    bases: Option<Bases>,
    /// The bytes of an object without a base.
    whole: Vec<u8>,
}

impl Sharing {
    pub(crate) fn new(options: &ScanOptions) -> Self {
        Self { bases: options.one_kind.then(Bases::default), whole: Vec::new() }
    }

    /// Returns the bytes of the bases of all objects so far.
    pub(crate) fn memory(&self) -> usize {
        self.bases.as_ref().map_or(0, Bases::memory)
    }

    /// Returns the object in the form that is stored. `old` is the object that the new object replaces.
    pub(crate) fn store(&mut self, object: &NewObject, old: Option<&RawObject>) -> RawObject {
        if let Some(based) = self.bases.as_mut().and_then(|bases| bases.store(object, old)) {
            return based;
        }
        self.whole.clear();
        self.whole.extend_from_slice(&object.bytes);
        let NewObject { texts, facts, .. } = object;
        facts.put(&mut self.whole, facts.json_length, texts, false);
        RawObject(ThinArc::from_header_and_slice(None, &self.whole))
    }
}

impl Assembler {
    pub(crate) fn new(options: &ScanOptions) -> Self {
        let type_members = options.type_meta.as_ref().map_or_else(Vec::new, |(api_version, kind)| {
            let quote = |text: &str| serde_json::Value::from(text).to_string();
            format!("\"apiVersion\":{},\"kind\":{},", quote(api_version), quote(kind)).into_bytes()
        });
        Self { type_members, object: NewObject::default(), sharing: Sharing::new(options) }
    }

    /// Returns the bytes of the bases of all objects so far.
    pub(crate) fn bases_memory(&self) -> usize {
        self.sharing.memory()
    }

    /// Returns the object without the cuts. `old` is the object that the new object replaces.
    pub(crate) fn assemble(&mut self, source: &[u8], index: &Index, old: Option<&RawObject>) -> RawObject {
        let mut object = std::mem::take(&mut self.object);
        self.read(source, index, &mut object);
        let stored = self.sharing.store(&object, old);
        self.object = object;
        stored
    }

    /// Reads the object without the cuts.
    pub(crate) fn read(&self, source: &[u8], index: &Index, object: &mut NewObject) {
        object.read(source, index, if index.has_type { &[] } else { &self.type_members });
    }
}

impl NewObject {
    /// Reads the object without the cuts. `inserted` are members for the begin of the object.
    fn read(&mut self, source: &[u8], index: &Index, inserted: &[u8]) {
        let relocation = Relocation { start: index.start as usize, inserted: inserted.len(), index };
        self.copy_json(source, &relocation, inserted);
        let json = self.bytes.len();
        self.bytes.extend_from_slice(&index.unescaped);
        let at = |text: Text| relocation.span(text, json as u32);
        self.texts.clear();
        self.texts.extend(index.texts.iter().map(|text| text.map_or(Span::default(), at)));
        self.texts.extend(index.labels.iter().flat_map(|&(key, value)| [at(key), at(value)]));
        let owners = index.owners.iter();
        self.texts.extend(
            owners.clone().flat_map(|owner| [owner.api_version, owner.kind, owner.name, owner.uid].map(at)),
        );
        self.texts.extend(index.finalizers.iter().map(|&finalizer| at(finalizer)));
        let facts = &mut self.facts;
        (facts.generation, facts.json_length) = (index.generation, json);
        (facts.labels, facts.finalizers) = (index.labels.len(), index.finalizers.len());
        facts.repeats_annotations = index.repeats_annotations();
        facts.owners.clear();
        facts.owners.extend(owners.map(|owner| {
            (u8::from(owner.controller) * CONTROLLER)
                | (u8::from(owner.block_owner_deletion) * BLOCK_DELETION)
        }));
    }

    fn copy_json(&mut self, source: &[u8], relocation: &Relocation<'_>, inserted: &[u8]) {
        self.bytes.clear();
        let mut from = relocation.start;
        if !inserted.is_empty() {
            self.bytes.push(b'{');
            self.bytes.extend_from_slice(inserted);
            from += 1;
        }
        for &(start, end) in &relocation.index.cuts {
            self.bytes.extend_from_slice(source.get(from..start as usize).unwrap_or_default());
            from = end as usize;
        }
        let end = relocation.index.end as usize;
        self.bytes.extend_from_slice(source.get(from..end).unwrap_or_default());
    }
}

/// Maps offsets of the source to offsets of the copy.
struct Relocation<'a> {
    /// The start of the object, after white space.
    start: usize,
    /// The number of bytes inserted after the opening bracket.
    inserted: usize,
    index: &'a Index,
}

impl Relocation<'_> {
    /// Returns the span of a text. The unescaped texts begin at `texts`.
    fn span(&self, text: Text, texts: u32) -> Span {
        let offset = if text.unescaped { texts + text.offset } else { self.moved(text.offset) };
        Span { offset, length: text.length }
    }

    fn moved(&self, offset: u32) -> u32 {
        let mut removed = 0;
        for &(start, end) in &self.index.cuts {
            if offset < end {
                removed += offset.saturating_sub(start);
                break;
            }
            removed += end - start;
        }
        (offset as usize + self.inserted).saturating_sub(self.start) as u32 - removed
    }
}
