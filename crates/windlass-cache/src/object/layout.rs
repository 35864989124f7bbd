//! How an object lies in memory: a header, then bytes: JSON, texts, and tables of fixed-size records.

use std::{ops::Range, sync::Arc};

use super::Dictionary;

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

/// The part of the index that every object has.
pub(super) struct Header {
    /// Present when the JSON is compressed.
    pub(super) dictionary: Option<Arc<Dictionary>>,
    pub(super) revision: u64,
    pub(super) generation: i64,
    /// Where the JSON lies, as it is stored.
    pub(super) json: Span,
    /// Length of the JSON, not compressed.
    pub(super) json_length: u32,
    pub(super) name: Span,
    pub(super) namespace: Span,
    pub(super) uid: Span,
    pub(super) resource_version: Span,
    pub(super) creation: Span,
    pub(super) deletion: Span,
    /// Of the JSON, not of the bytes; empty when there are none.
    pub(super) annotations: Span,
    /// Where the tables begin: labels, owners, finalizers.
    pub(super) tables: u32,
    pub(super) labels: u16,
    pub(super) owners: u16,
    pub(super) finalizers: u16,
}

/// An owner reference as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnerRecord {
    pub(super) api_version: Span,
    pub(super) kind: Span,
    pub(super) name: Span,
    pub(super) uid: Span,
    pub(super) controller: bool,
    pub(super) block_owner_deletion: bool,
}

const LABEL: usize = 12;
const OWNER: usize = 33;
const FINALIZER: usize = 8;

impl Header {
    pub(super) fn annotations(&self) -> Option<Span> {
        (self.annotations.length > 0).then_some(self.annotations)
    }

    pub(super) fn labels(&self, bytes: &[u8]) -> impl Iterator<Item = (Span, Span)> {
        let records = self.table(bytes, 0, usize::from(self.labels) * LABEL).as_chunks::<LABEL>().0;
        records.iter().map(|record| {
            let short = |at| u32::from(u16::from_le_bytes([record[at], record[at + 1]]));
            (
                Span { offset: word(record, 0), length: short(8) },
                Span { offset: word(record, 4), length: short(10) },
            )
        })
    }

    pub(super) fn owners(&self, bytes: &[u8]) -> impl Iterator<Item = OwnerRecord> {
        let start = usize::from(self.labels) * LABEL;
        let records = self.table(bytes, start, usize::from(self.owners) * OWNER).as_chunks::<OWNER>().0;
        records.iter().map(|record| OwnerRecord {
            api_version: span(record, 0),
            kind: span(record, 8),
            name: span(record, 16),
            uid: span(record, 24),
            controller: record[32] & 1 != 0,
            block_owner_deletion: record[32] & 2 != 0,
        })
    }

    pub(super) fn finalizers(&self, bytes: &[u8]) -> impl Iterator<Item = Span> {
        let start = usize::from(self.labels) * LABEL + usize::from(self.owners) * OWNER;
        let length = usize::from(self.finalizers) * FINALIZER;
        self.table(bytes, start, length).as_chunks::<FINALIZER>().0.iter().map(|record| span(record, 0))
    }

    fn table<'a>(&self, bytes: &'a [u8], start: usize, length: usize) -> &'a [u8] {
        let start = self.tables as usize + start;
        bytes.get(start..start + length).unwrap_or_default()
    }
}

pub(super) fn put_label(bytes: &mut Vec<u8>, key: Span, value: Span) {
    bytes.extend_from_slice(&key.offset.to_le_bytes());
    bytes.extend_from_slice(&value.offset.to_le_bytes());
    // The scan refuses labels that are longer.
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
