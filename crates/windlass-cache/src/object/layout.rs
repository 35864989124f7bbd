//! The memory layout of an object: its form, then its bytes.
//!
//! The bytes of an object that is stored as JSON are: the JSON, compressed or not; indexed texts that are not in the JSON
//! literally; tables of fixed-size records; and a [`Record`] with the ranges of everything else.

use std::{ops::Range, sync::Arc};

use super::Dictionary;
use crate::scan::{Field, Shape};

/// The form of an object's bytes.
pub(super) enum Form {
    /// JSON.
    Plain,
    /// Compressed JSON.
    Compressed(Arc<Dictionary>),
    /// The object's own values; see [`Shaped`](super::shaped::Shaped).
    Shaped(Arc<Shape>),
}

impl Form {
    /// Returns whether equal bytes of both forms are equal objects.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain, Self::Plain) => true,
            (Self::Compressed(dictionary), Self::Compressed(other)) => Arc::ptr_eq(dictionary, other),
            (Self::Shaped(shape), Self::Shaped(other)) => Arc::ptr_eq(shape, other),
            _ => false,
        }
    }
}

/// A range of an object's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u32,
    pub(super) length: u32,
}

impl Span {
    pub(super) fn range(self) -> Range<usize> {
        self.offset as usize..self.offset as usize + self.length as usize
    }

    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.range()).unwrap_or_default()
    }
}

/// The index of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) fields: [Span; 6],
    /// The stored JSON.
    pub(super) json: Span,
    /// A range of the uncompressed JSON; empty if there are no annotations.
    pub(super) annotations: Span,
    pub(super) generation: i64,
    /// The length of the uncompressed JSON.
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

const SPAN: usize = 8;
const JSON: usize = 6 * SPAN;
const ANNOTATIONS: usize = 7 * SPAN;
const GENERATION: usize = 8 * SPAN;
const JSON_LENGTH: usize = GENERATION + 8;
const COUNTS: usize = JSON_LENGTH + 4;
const RECORD: usize = COUNTS + 6;

const LABEL: usize = 12;
const OWNER: usize = 33;

impl Record {
    /// Appends the record.
    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        self.fields.iter().chain([&self.json, &self.annotations]).for_each(|&span| put_span(bytes, span));
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.json_length.to_le_bytes());
        for count in [self.labels, self.owners, self.finalizers] {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
    }
}

/// The bytes of an object that is stored as JSON.
#[derive(Clone, Copy)]
pub(super) struct Plain<'a> {
    bytes: &'a [u8],
    record: &'a [u8],
}

impl<'a> Plain<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let record = bytes.len().saturating_sub(RECORD);
        Self { bytes, record: &bytes[record..] }
    }

    pub(super) fn field(self, field: Field) -> &'a [u8] {
        span(self.record, field as usize * SPAN).of(self.bytes)
    }

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

    pub(super) fn label(self, number: usize) -> (&'a [u8], &'a [u8]) {
        let record = self.table(0, LABEL, number);
        let key = Span { offset: word(record, 0), length: short(record, 8) };
        let value = Span { offset: word(record, 4), length: short(record, 10) };
        (key.of(self.bytes), value.of(self.bytes))
    }

    pub(super) fn owners(self) -> usize {
        self.count(1)
    }

    pub(super) fn owner(self, number: usize) -> OwnerRecord {
        let record = self.table(self.labels() * LABEL, OWNER, number);
        let flags = record.get(32).copied().unwrap_or_default();
        OwnerRecord {
            api_version: span(record, 0),
            kind: span(record, 8),
            name: span(record, 16),
            uid: span(record, 24),
            controller: flags & 1 != 0,
            block_owner_deletion: flags & 2 != 0,
        }
    }

    pub(super) fn finalizers(self) -> usize {
        self.count(2)
    }

    pub(super) fn finalizer(self, number: usize) -> &'a [u8] {
        let record = self.table(self.labels() * LABEL + self.owners() * OWNER, SPAN, number);
        span(record, 0).of(self.bytes)
    }

    pub(super) fn text(self, span: Span) -> &'a [u8] {
        span.of(self.bytes)
    }

    fn count(self, number: usize) -> usize {
        short(self.record, COUNTS + 2 * number) as usize
    }

    /// Returns a record of the table that begins `start` bytes after the first table.
    fn table(self, start: usize, size: usize, number: usize) -> &'a [u8] {
        let tables = self.labels() * LABEL + self.owners() * OWNER + self.finalizers() * SPAN;
        let end = self.bytes.len().saturating_sub(RECORD);
        let at = end.saturating_sub(tables) + start + number * size;
        self.bytes.get(at..at + size).unwrap_or_default()
    }
}

pub(super) fn put_label(bytes: &mut Vec<u8>, key: Span, value: Span) {
    bytes.extend_from_slice(&key.offset.to_le_bytes());
    bytes.extend_from_slice(&value.offset.to_le_bytes());
    // The scan rejects longer labels.
    bytes.extend_from_slice(&(key.length as u16).to_le_bytes());
    bytes.extend_from_slice(&(value.length as u16).to_le_bytes());
}

pub(super) fn put_owner(bytes: &mut Vec<u8>, owner: &OwnerRecord) {
    for span in [owner.api_version, owner.kind, owner.name, owner.uid] {
        put_span(bytes, span);
    }
    bytes.push(u8::from(owner.controller) | u8::from(owner.block_owner_deletion) << 1);
}

pub(super) fn put_span(bytes: &mut Vec<u8>, span: Span) {
    bytes.extend_from_slice(&span.offset.to_le_bytes());
    bytes.extend_from_slice(&span.length.to_le_bytes());
}

fn span(record: &[u8], at: usize) -> Span {
    Span { offset: word(record, at), length: word(record, at + 4) }
}

fn word(record: &[u8], at: usize) -> u32 {
    record.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub(super) fn short(record: &[u8], at: usize) -> u32 {
    record
        .get(at..at + 2)
        .and_then(|short| short.try_into().ok())
        .map_or(0, |short| u16::from_le_bytes(short).into())
}
