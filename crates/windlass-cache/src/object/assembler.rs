//! Assembles objects from the results of a scan.

use triomphe::ThinArc;

use super::{
    RawObject,
    bases::Bases,
    layout::{Form, NewIndex, Span, owner_flags},
};
use crate::scan::{Index, Text};

/// Assembles objects, and reuses the working memory.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// The members `apiVersion` and `kind`, for objects without these members.
    type_members: Vec<u8>,
    bytes: Vec<u8>,
    /// The spans of the indexed texts.
    texts: Vec<Span>,
    /// The bases of earlier objects, if all objects are of one kind.
    bases: Option<Bases>,
}

impl Assembler {
    pub(crate) fn new(type_meta: Option<&(String, String)>, one_kind: bool) -> Self {
        let type_members = type_meta.map_or_else(Vec::new, |(api_version, kind)| {
            let quote = |text: &str| serde_json::Value::from(text).to_string();
            format!("\"apiVersion\":{},\"kind\":{},", quote(api_version), quote(kind)).into_bytes()
        });
        Self { type_members, bytes: Vec::new(), texts: Vec::new(), bases: one_kind.then(Bases::default) }
    }

    /// Returns the bytes of the bases of all objects so far.
    pub(crate) fn bases_memory(&self) -> usize {
        self.bases.as_ref().map_or(0, Bases::memory)
    }

    /// Returns the object without the cuts. `old` is the object that the new object replaces.
    pub(crate) fn assemble(&mut self, source: &[u8], index: &Index, old: Option<&RawObject>) -> RawObject {
        self.put_object(source, index);
        let based = self.bases.as_mut().and_then(|bases| bases.store(&self.bytes, old));
        based.unwrap_or_else(|| RawObject(ThinArc::from_header_and_slice(Form::Plain, &self.bytes)))
    }

    /// Copies the object without the cuts, and appends the index.
    fn put_object(&mut self, source: &[u8], index: &Index) {
        self.bytes.clear();
        let inserted = if index.has_type { 0 } else { self.type_members.len() };
        let relocation = Relocation { start: index.start as usize, inserted, index };
        self.copy_json(source, &relocation);
        let json = Span::new(0, self.bytes.len());
        self.bytes.extend_from_slice(&index.unescaped);
        let at = |text: Text| relocation.span(text, json.length);
        self.texts.clear();
        self.texts.extend(index.texts.iter().map(|text| text.map_or(Span::default(), at)));
        self.texts.extend(index.labels.iter().flat_map(|&(key, value)| [at(key), at(value)]));
        let owners = index.owners.iter();
        self.texts.extend(
            owners.clone().flat_map(|owner| [owner.api_version, owner.kind, owner.name, owner.uid].map(at)),
        );
        self.texts.extend(index.finalizers.iter().map(|&finalizer| at(finalizer)));
        let stored = NewIndex {
            texts: &self.texts,
            json,
            annotations: index.annotations.map_or(Span::default(), |text| relocation.range(text)),
            generation: index.generation,
            json_length: json.length as usize,
            labels: index.labels.len(),
            owners: index.owners.len(),
            finalizers: index.finalizers.len(),
        };
        let flags = owners.map(|owner| owner_flags(owner.controller, owner.block_owner_deletion));
        stored.put(&mut self.bytes, flags);
    }

    fn copy_json(&mut self, source: &[u8], relocation: &Relocation<'_>) {
        let mut from = relocation.start;
        if relocation.inserted > 0 {
            self.bytes.push(b'{');
            self.bytes.extend_from_slice(&self.type_members);
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
    fn span(&self, text: Text, texts: u32) -> Span {
        if text.unescaped {
            return Span { offset: texts + text.offset, length: text.length };
        }
        Span { length: text.length, ..self.range(text) }
    }

    /// Returns the range of the copy for a range of the source.
    fn range(&self, text: Text) -> Span {
        let start = self.moved(text.offset);
        Span { offset: start, length: self.moved(text.offset + text.length).saturating_sub(start) }
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
