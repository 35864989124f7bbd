//! The memory layout of an object: the form, then the bytes.
//!
//! The bytes of an object are: the stored JSON, in the object's form; indexed texts that the stored JSON does not contain literally; tables
//! of fixed-size records; and a [`Record`] with the ranges of everything else.

use std::{ops::Range, sync::Arc};

use super::{Base, Dictionary};
use crate::scan::Field;

/// The form of the stored JSON.
pub(super) enum Form {
    /// The JSON.
    Plain,
    /// The differences between the JSON and the text of a base. See [`Difference`](super::difference::Difference).
    Based(Arc<Base>),
    /// The JSON or the differences, compressed.
    Compressed(Arc<Dictionary>, Option<Arc<Base>>),
}

impl Form {
    /// Returns whether equal bytes of both forms are equal objects.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain, Self::Plain) => true,
            (Self::Based(base), Self::Based(other)) => Arc::ptr_eq(base, other),
            (Self::Compressed(dictionary, base), Self::Compressed(other, other_base)) => {
                Arc::ptr_eq(dictionary, other)
                    && base.as_ref().map(Arc::as_ptr) == other_base.as_ref().map(Arc::as_ptr)
            }
            _ => false,
        }
    }

    pub(super) fn base(&self) -> Option<&Arc<Base>> {
        match self {
            Self::Plain => None,
            Self::Based(base) => Some(base),
            Self::Compressed(_, base) => base.as_ref(),
        }
    }
}

/// A range of an object's bytes or, if [`IN_BASE`] is added to the offset, of the base's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// Marks the offset of a span in the text of a base. Objects are shorter.
pub(super) const IN_BASE: u32 = 1 << 31;

impl Span {
    pub(super) fn new(offset: usize, length: usize) -> Self {
        Self { offset: offset as u32, length: length as u32 }
    }

    pub(super) fn range(self) -> Range<usize> {
        self.offset as usize..self.offset as usize + self.length as usize
    }

    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.range()).unwrap_or_default()
    }
}

/// The index of an object, without the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) fields: [Span; 6],
    /// The stored JSON.
    pub(super) json: Span,
    /// A range of the JSON; empty if there are no annotations.
    pub(super) annotations: Span,
    pub(super) generation: i64,
    /// The length of the JSON.
    pub(super) json_length: u32,
    pub(super) labels: u16,
    pub(super) owners: u16,
    pub(super) finalizers: u16,
}

/// A stored owner reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnerRecord {
    pub(super) api_version: Span,
    pub(super) kind: Span,
    pub(super) name: Span,
    pub(super) uid: Span,
    pub(super) controller: bool,
    pub(super) block_owner_deletion: bool,
}

/// The length of a stored text: an offset of four bytes and a length of two. The scan rejects longer texts.
const TEXT: usize = 6;
const SPAN: usize = 8;
const JSON: usize = 6 * TEXT;
const ANNOTATIONS: usize = JSON + SPAN;
const GENERATION: usize = ANNOTATIONS + SPAN;
const JSON_LENGTH: usize = GENERATION + 8;
const COUNTS: usize = JSON_LENGTH + 4;
const RECORD: usize = COUNTS + 6;

const LABEL: usize = 2 * TEXT;
const OWNER: usize = 4 * TEXT + 1;

impl Record {
    /// Appends the record.
    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        self.fields.iter().for_each(|&text| put_text(bytes, text));
        for span in [self.json, self.annotations] {
            bytes.extend_from_slice(&span.offset.to_le_bytes());
            bytes.extend_from_slice(&span.length.to_le_bytes());
        }
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.json_length.to_le_bytes());
        for count in [self.labels, self.owners, self.finalizers] {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
    }
}

/// A view of an object's bytes.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    bytes: &'a [u8],
    base: &'a [u8],
    record: &'a [u8],
}

impl<'a> Layout<'a> {
    /// Creates a view. `base` is the text of the object's base, or empty.
    pub(super) fn new(bytes: &'a [u8], base: &'a [u8]) -> Self {
        let record = bytes.len().saturating_sub(RECORD);
        Self { bytes, base, record: &bytes[record..] }
    }

    /// Returns the spans of all indexed texts: fields, labels, owners, finalizers.
    pub(super) fn texts(self) -> impl Iterator<Item = Span> {
        let fields = (0..6).map(move |field| text(self.record, field * TEXT));
        let labels = (0..self.labels()).map(move |number| self.label_spans(number));
        let owners = (0..self.owners()).map(move |number| self.owner(number));
        let finalizers = (0..self.finalizers()).map(move |number| self.finalizer_span(number));
        fields
            .chain(labels.flat_map(|(key, value)| [key, value]))
            .chain(owners.flat_map(|owner| [owner.api_version, owner.kind, owner.name, owner.uid]))
            .chain(finalizers)
    }

    /// Appends the tables and the record to `bytes`, with other spans. `texts` are in the order of [`Self::texts`].
    pub(super) fn put_index(self, bytes: &mut Vec<u8>, json: Span, texts: &[Span]) {
        let mut texts = texts.iter().copied();
        let mut next = || texts.next().unwrap_or_default();
        let fields = [(); 6].map(|()| next());
        for _ in 0..self.labels() {
            put_label(bytes, next(), next());
        }
        for number in 0..self.owners() {
            let (api_version, kind, name, uid) = (next(), next(), next(), next());
            put_owner(bytes, &OwnerRecord { api_version, kind, name, uid, ..self.owner(number) });
        }
        for _ in 0..self.finalizers() {
            put_text(bytes, next());
        }
        let record = Record {
            fields,
            json,
            annotations: self.annotations(),
            generation: self.generation(),
            json_length: self.json_length() as u32,
            labels: self.labels() as u16,
            owners: self.owners() as u16,
            finalizers: self.finalizers() as u16,
        };
        record.put(bytes);
    }

    /// Returns all bytes up to the end of the stored JSON: those that a compression replaces.
    pub(super) fn body(self) -> &'a [u8] {
        self.bytes.get(..span(self.record, JSON).range().end).unwrap_or_default()
    }

    pub(super) fn text(self, span: Span) -> &'a [u8] {
        if span.offset & IN_BASE == 0 {
            return span.of(self.bytes);
        }
        Span { offset: span.offset & !IN_BASE, ..span }.of(self.base)
    }

    #[inline]
    pub(super) fn field(self, field: Field) -> &'a [u8] {
        self.text(text(self.record, field as usize * TEXT))
    }

    /// Returns the stored JSON.
    pub(super) fn json(self) -> &'a [u8] {
        span(self.record, JSON).of(self.bytes)
    }

    pub(super) fn annotations(self) -> Span {
        span(self.record, ANNOTATIONS)
    }

    pub(super) fn generation(self) -> i64 {
        let bytes = self.record.get(GENERATION..JSON_LENGTH).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, i64::from_le_bytes)
    }

    pub(super) fn json_length(self) -> usize {
        word(self.record, JSON_LENGTH) as usize
    }

    pub(super) fn labels(self) -> usize {
        self.count(0)
    }

    fn label_spans(self, number: usize) -> (Span, Span) {
        let record = self.table(0, LABEL, number);
        (text(record, 0), text(record, TEXT))
    }

    pub(super) fn label(self, number: usize) -> (&'a [u8], &'a [u8]) {
        let (key, value) = self.label_spans(number);
        (self.text(key), self.text(value))
    }

    pub(super) fn owners(self) -> usize {
        self.count(1)
    }

    pub(super) fn owner(self, number: usize) -> OwnerRecord {
        let record = self.table(self.labels() * LABEL, OWNER, number);
        let flags = record.get(4 * TEXT).copied().unwrap_or_default();
        OwnerRecord {
            api_version: text(record, 0),
            kind: text(record, TEXT),
            name: text(record, 2 * TEXT),
            uid: text(record, 3 * TEXT),
            controller: flags & 1 != 0,
            block_owner_deletion: flags & 2 != 0,
        }
    }

    pub(super) fn finalizers(self) -> usize {
        self.count(2)
    }

    fn finalizer_span(self, number: usize) -> Span {
        text(self.table(self.labels() * LABEL + self.owners() * OWNER, TEXT, number), 0)
    }

    pub(super) fn finalizer(self, number: usize) -> &'a [u8] {
        self.text(self.finalizer_span(number))
    }

    fn count(self, number: usize) -> usize {
        short(self.record, COUNTS + 2 * number) as usize
    }

    /// Returns the offset of the first table.
    fn tables(self) -> usize {
        let tables = self.labels() * LABEL + self.owners() * OWNER + self.finalizers() * TEXT;
        self.bytes.len().saturating_sub(RECORD + tables)
    }

    /// Returns a record of the table that begins `start` bytes after the first table.
    fn table(self, start: usize, size: usize, number: usize) -> &'a [u8] {
        let at = self.tables() + start + number * size;
        self.bytes.get(at..at + size).unwrap_or_default()
    }
}

pub(super) fn put_label(bytes: &mut Vec<u8>, key: Span, value: Span) {
    put_text(bytes, key);
    put_text(bytes, value);
}

pub(super) fn put_owner(bytes: &mut Vec<u8>, owner: &OwnerRecord) {
    for span in [owner.api_version, owner.kind, owner.name, owner.uid] {
        put_text(bytes, span);
    }
    bytes.push(u8::from(owner.controller) | u8::from(owner.block_owner_deletion) << 1);
}

pub(super) fn put_text(bytes: &mut Vec<u8>, span: Span) {
    bytes.extend_from_slice(&span.offset.to_le_bytes());
    bytes.extend_from_slice(&(span.length as u16).to_le_bytes());
}

fn text(record: &[u8], at: usize) -> Span {
    Span { offset: word(record, at), length: short(record, at + 4) }
}

fn span(record: &[u8], at: usize) -> Span {
    Span { offset: word(record, at), length: word(record, at + 4) }
}

fn word(record: &[u8], at: usize) -> u32 {
    record.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn short(record: &[u8], at: usize) -> u32 {
    record
        .get(at..at + 2)
        .and_then(|short| short.try_into().ok())
        .map_or(0, |short| u16::from_le_bytes(short).into())
}
