//! Makes an object of what the scan found.

use std::sync::Arc;

use triomphe::ThinArc;

use super::{
    Dictionary, RawObject,
    layout::{Header, OwnerRecord, Span, put_label, put_owner, put_span},
};
use crate::scan::{Index, Text};

/// Makes objects, reusing its working memory.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// `apiVersion` and `kind`, as members, for objects that come without.
    type_members: Vec<u8>,
    bytes: Vec<u8>,
}

impl Assembler {
    pub(crate) fn new(type_meta: Option<&(String, String)>) -> Self {
        let type_members = type_meta.map_or_else(Vec::new, |(api_version, kind)| {
            let quote = |text: &str| serde_json::Value::from(text).to_string();
            format!("\"apiVersion\":{},\"kind\":{},", quote(api_version), quote(kind)).into_bytes()
        });
        Self { type_members, bytes: Vec::new() }
    }

    /// Copies the object without its cuts, and lays its index beside it.
    pub(crate) fn assemble(&mut self, source: &[u8], index: &Index) -> RawObject {
        self.bytes.clear();
        let inserted = if index.has_type { 0 } else { self.type_members.len() };
        let place = Place { start: index.start as usize, inserted, index };
        self.copy_json(source, &place);
        let json = Span { offset: 0, length: self.bytes.len() as u32 };
        let texts = json.length;
        self.bytes.extend_from_slice(&index.unescaped);
        let tables = self.bytes.len() as u32;
        let at = |text: Text| place.span(text, texts);
        for &(key, value) in &index.labels {
            put_label(&mut self.bytes, at(key), at(value));
        }
        for owner in &index.owners {
            let record = OwnerRecord {
                api_version: at(owner.api_version),
                kind: at(owner.kind),
                name: at(owner.name),
                uid: at(owner.uid),
                controller: owner.controller,
                block_owner_deletion: owner.block_owner_deletion,
            };
            put_owner(&mut self.bytes, &record);
        }
        for &finalizer in &index.finalizers {
            put_span(&mut self.bytes, at(finalizer));
        }
        let optional = |text: Option<Text>| text.map_or(Span::default(), at);
        let header = Header {
            dictionary: None,
            revision: revision(source, index),
            generation: index.generation,
            json,
            json_length: json.length,
            name: optional(index.name),
            namespace: optional(index.namespace),
            uid: optional(index.uid),
            resource_version: optional(index.resource_version),
            creation: optional(index.creation),
            deletion: optional(index.deletion),
            annotations: index.annotations.map_or(Span::default(), |text| place.range(text)),
            tables,
            labels: index.labels.len() as u16,
            owners: index.owners.len() as u16,
            finalizers: index.finalizers.len() as u16,
        };
        RawObject(ThinArc::from_header_and_slice(header, &self.bytes))
    }

    fn copy_json(&mut self, source: &[u8], place: &Place<'_>) {
        let mut from = place.start;
        if place.inserted > 0 {
            self.bytes.push(b'{');
            self.bytes.extend_from_slice(&self.type_members);
            from += 1;
        }
        for &(start, end) in &place.index.cuts {
            self.bytes.extend_from_slice(source.get(from..start as usize).unwrap_or_default());
            from = end as usize;
        }
        let end = place.index.end as usize;
        self.bytes.extend_from_slice(source.get(from..end).unwrap_or_default());
    }
}

/// Where bytes of the source come to lie.
struct Place<'a> {
    /// Where the object begins: behind the white space.
    start: usize,
    /// Bytes inserted behind the opening bracket.
    inserted: usize,
    index: &'a Index,
}

impl Place<'_> {
    fn span(&self, text: Text, texts: u32) -> Span {
        if text.unescaped {
            return Span { offset: texts + text.offset, length: text.length };
        }
        Span { length: text.length, ..self.range(text) }
    }

    /// The range that remains of a source range.
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

fn revision(source: &[u8], index: &Index) -> u64 {
    let Some(text) = index.resource_version else { return 0 };
    std::str::from_utf8(index.text(source, text)).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

impl RawObject {
    /// The same object with its JSON compressed. What is indexed stays readable without decompressing.
    pub(crate) fn compress(&self, dictionary: &Arc<Dictionary>) -> Option<Self> {
        let json = self.json();
        let stored = dictionary.compress(&json).ok()?;
        let header = self.header();
        let mut bytes = stored;
        let stored = Span { offset: 0, length: bytes.len() as u32 };
        let slice = self.slice();
        let mut keep = |span: Span| {
            let offset = bytes.len() as u32;
            bytes.extend_from_slice(span.of(slice));
            Span { offset, ..span }
        };
        let (name, namespace, uid) = (keep(header.name), keep(header.namespace), keep(header.uid));
        let resource_version = keep(header.resource_version);
        let (creation, deletion) = (keep(header.creation), keep(header.deletion));
        let labels: Vec<_> = header.labels(slice).map(|(key, value)| (keep(key), keep(value))).collect();
        let owners: Vec<_> = header
            .owners(slice)
            .map(|owner| OwnerRecord {
                api_version: keep(owner.api_version),
                kind: keep(owner.kind),
                name: keep(owner.name),
                uid: keep(owner.uid),
                ..owner
            })
            .collect();
        let finalizers: Vec<_> = header.finalizers(slice).map(&mut keep).collect();
        let tables = bytes.len() as u32;
        for &(key, value) in &labels {
            put_label(&mut bytes, key, value);
        }
        for owner in &owners {
            put_owner(&mut bytes, owner);
        }
        for &finalizer in &finalizers {
            put_span(&mut bytes, finalizer);
        }
        let header = Header {
            dictionary: Some(dictionary.clone()),
            json: stored,
            name,
            namespace,
            uid,
            resource_version,
            creation,
            deletion,
            tables,
            ..*header
        };
        Some(Self(ThinArc::from_header_and_slice(header, &bytes)))
    }
}
