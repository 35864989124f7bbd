//! Assembles objects from the results of a scan.

use triomphe::ThinArc;

use super::{
    RawObject,
    bases::Bases,
    layout::{BLOCK_DELETION, CONTROLLER, IndexFacts, Span},
};
use crate::scan::{Index, Text};

/// Assembles objects, and reuses the working memory.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// The members `apiVersion` and `kind`, for objects without these members.
    type_members: Vec<u8>,
    object: NewObject,
    /// The bases of earlier objects, if all objects are of one kind.
    bases: Option<Bases>,
}

/// An object that is not stored yet.
#[derive(Debug, Default)]
pub(super) struct NewObject {
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
}

impl Assembler {
    pub(crate) fn new(type_meta: Option<&(String, String)>, one_kind: bool) -> Self {
        let type_members = type_meta.map_or_else(Vec::new, |(api_version, kind)| {
            let quote = |text: &str| serde_json::Value::from(text).to_string();
            format!("\"apiVersion\":{},\"kind\":{},", quote(api_version), quote(kind)).into_bytes()
        });
        Self { type_members, object: NewObject::default(), bases: one_kind.then(Bases::default) }
    }

    /// Returns the bytes of the bases of all objects so far.
    pub(crate) fn bases_memory(&self) -> usize {
        self.bases.as_ref().map_or(0, Bases::memory)
    }

    /// Returns the object without the cuts. `old` is the object that the new object replaces.
    pub(crate) fn assemble(&mut self, source: &[u8], index: &Index, old: Option<&RawObject>) -> RawObject {
        let object = &mut self.object;
        object.read(source, index, if index.has_type { &[] } else { &self.type_members });
        if let Some(based) = self.bases.as_mut().and_then(|bases| bases.store(object, old)) {
            return based;
        }
        let NewObject { bytes, texts, facts } = object;
        facts.put(bytes, facts.json_length, texts, false);
        RawObject(ThinArc::from_header_and_slice(None, bytes))
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
