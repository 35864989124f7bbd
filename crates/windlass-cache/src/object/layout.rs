//! The memory layout of an object.
//!
//! The bytes of an object are: the body; indexed texts that neither the body nor the base contains literally; tables of fixed-size
//! records; a record with everything else; and a byte with the [`Width`] and flags. The body is:
//!
//! - without a base, the JSON;
//! - with a base, the own texts, and after them, up to the tables, the operations. See [`Difference`](super::difference::Difference);
//! - compressed, the compressed bytes of such a body.

use std::ops::Range;

use crate::scan::Field;

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

    /// Returns the text of the span, in an object's bytes or in the text of the object's base.
    #[inline]
    pub(super) fn text<'a>(self, bytes: &'a [u8], base: &'a [u8]) -> &'a [u8] {
        let from = if self.offset & IN_BASE == 0 { bytes } else { base };
        from.get(Self { offset: self.offset & !IN_BASE, ..self }.range()).unwrap_or_default()
    }
}

/// An index without the places of the indexed texts.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexFacts {
    pub(super) generation: i64,
    /// The length of the JSON.
    pub(super) json_length: usize,
    pub(super) labels: usize,
    /// The flags of each owner: [`CONTROLLER`] and [`BLOCK_DELETION`].
    pub(super) owners: Vec<u8>,
    pub(super) finalizers: usize,
    /// The object has more than one member `metadata` or `annotations`, of which the last counts.
    pub(super) repeats_annotations: bool,
}

/// A stored owner reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnerRecord {
    pub(super) api_version: Span,
    pub(super) kind: Span,
    pub(super) name: Span,
    pub(super) uid: Span,
    pub(super) flags: u8,
}

/// The flag of an owner reference with `controller`.
pub(super) const CONTROLLER: u8 = 1;
/// The flag of an owner reference with `blockOwnerDeletion`.
pub(super) const BLOCK_DELETION: u8 = 2;

/// The size of the numbers in an index: the index of a usual object is half as large as the index of a large object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Narrow = 1,
    Wide = 2,
}

/// Marks the last byte of an object with a compressed body.
const COMPRESSED: u8 = 4;

/// Marks the last byte of an object with more than one member `metadata` or `annotations`.
const REPEATS_ANNOTATIONS: u8 = 8;

/// The sizes in a narrow index. Everything in a wide index has twice the size.
///
/// A text is an offset of two bytes and a length of one byte. The scan rejects texts that are too long for a wide index.
const TEXT: usize = 3;
const BODY: usize = FIELDS * TEXT;
const GENERATION: usize = BODY + 2;
const JSON_LENGTH: usize = GENERATION + 4;
const COUNTS: usize = JSON_LENGTH + 2;
const RECORD: usize = COUNTS + 3;

const LABEL: usize = 2 * TEXT;
const OWNER: usize = 4 * TEXT + 1;
/// The number of [`Field`]s.
const FIELDS: usize = 6;

/// Marks the offset of a span in the text of a base, in a narrow index.
const NARROW_IN_BASE: u16 = 1 << 15;

impl Width {
    /// Returns the size of something that takes `narrow` bytes in a narrow index.
    const fn size(self, narrow: usize) -> usize {
        narrow * self as usize
    }

    /// Returns a number that takes `narrow` bytes in a narrow index.
    #[inline]
    fn number(self, record: &[u8], at: usize, narrow: usize) -> u64 {
        let rest = record.get(self.size(at)..).unwrap_or_default();
        match self.size(narrow) {
            1 => rest.first().map_or(0, |&byte| byte.into()),
            2 => rest.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes).into()),
            4 => rest.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes).into()),
            _ => rest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
        }
    }

    #[inline]
    fn text(self, record: &[u8], at: usize) -> Span {
        match self {
            Self::Narrow => {
                let Some(&[low, high, length]) = record.get(at..).and_then(<[u8]>::first_chunk) else {
                    return Span::default();
                };
                let offset = u16::from_le_bytes([low, high]);
                let in_base = if offset & NARROW_IN_BASE == 0 { 0 } else { IN_BASE };
                Span { offset: u32::from(offset & !NARROW_IN_BASE) | in_base, length: length.into() }
            }
            Self::Wide => {
                let Some(&[a, b, c, d, low, high]) = record.get(2 * at..).and_then(<[u8]>::first_chunk)
                else {
                    return Span::default();
                };
                let length = u16::from_le_bytes([low, high]);
                Span { offset: u32::from_le_bytes([a, b, c, d]), length: length.into() }
            }
        }
    }
}

/// Writes the numbers of an index.
struct IndexWriter<'a> {
    rest: &'a mut [u8],
    width: Width,
}

impl IndexWriter<'_> {
    #[inline]
    fn text(&mut self, Span { offset, length }: Span) {
        match self.width {
            Width::Narrow => {
                let in_base = if offset & IN_BASE == 0 { 0 } else { NARROW_IN_BASE };
                let [low, high] = (offset as u16 | in_base).to_le_bytes();
                self.put([low, high, length as u8]);
            }
            Width::Wide => {
                let [a, b, c, d] = offset.to_le_bytes();
                let [low, high] = (length as u16).to_le_bytes();
                self.put([a, b, c, d, low, high]);
            }
        }
    }

    /// Writes a number that takes `narrow` bytes in a narrow index.
    #[inline]
    fn number(&mut self, narrow: usize, number: u64) {
        match self.width.size(narrow) {
            1 => self.put([number as u8]),
            2 => self.put((number as u16).to_le_bytes()),
            4 => self.put((number as u32).to_le_bytes()),
            _ => self.put(number.to_le_bytes()),
        }
    }

    #[inline]
    fn put<const SIZE: usize>(&mut self, bytes: [u8; SIZE]) {
        if let Some((place, rest)) = std::mem::take(&mut self.rest).split_first_chunk_mut() {
            *place = bytes;
            self.rest = rest;
        }
    }
}

impl IndexFacts {
    /// Appends the tables, the record and the last byte. The first `body` bytes are the body, and `texts` are the spans of the indexed
    /// texts, in the order of [`Layout::texts`].
    pub(super) fn put(&self, bytes: &mut Vec<u8>, body: usize, texts: &[Span], is_compressed: bool) {
        let width = self.width(body, texts);
        let tables = self.labels * LABEL + self.owners.len() * OWNER + self.finalizers * TEXT;
        let start = bytes.len();
        bytes.resize(start + width.size(tables + RECORD), 0);
        let mut writer = IndexWriter { rest: &mut bytes[start..], width };
        let (fields, texts) = texts.split_at(FIELDS);
        let (labels, texts) = texts.split_at(2 * self.labels);
        let (owners, finalizers) = texts.split_at(4 * self.owners.len());
        labels.iter().for_each(|&text| writer.text(text));
        for (owner, &flags) in owners.chunks(4).zip(&self.owners) {
            owner.iter().for_each(|&text| writer.text(text));
            writer.number(1, flags.into());
        }
        finalizers.iter().chain(fields).for_each(|&text| writer.text(text));
        writer.number(GENERATION - BODY, body as u64);
        writer.number(JSON_LENGTH - GENERATION, self.generation as u64);
        writer.number(COUNTS - JSON_LENGTH, self.json_length as u64);
        for count in [self.labels, self.owners.len(), self.finalizers] {
            writer.number(1, count as u64);
        }
        let flags = [(is_compressed, COMPRESSED), (self.repeats_annotations, REPEATS_ANNOTATIONS)];
        bytes.push(flags.iter().fold(width as u8, |byte, &(is_set, flag)| byte | (u8::from(is_set) * flag)));
    }

    /// Returns the smallest width that has room for every number.
    fn width(&self, body: usize, texts: &[Span]) -> Width {
        let is_short = |text: &Span| text.offset & !IN_BASE < NARROW_IN_BASE.into() && text.length < 1 << 8;
        let has_room = texts.iter().all(is_short)
            && body.max(self.json_length) < 1 << 16
            && u32::try_from(self.generation).is_ok()
            && self.labels.max(self.owners.len()).max(self.finalizers) < 1 << 8;
        if has_room { Width::Narrow } else { Width::Wide }
    }

    pub(super) fn has_same_counts(&self, layout: Layout<'_>) -> bool {
        [self.labels, self.owners.len(), self.finalizers]
            == [layout.labels(), layout.owners(), layout.finalizers()]
    }
}

/// A view of an object's bytes.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    bytes: &'a [u8],
    base: &'a [u8],
    record: &'a [u8],
    width: Width,
    flags: u8,
}

impl<'a> Layout<'a> {
    /// Creates a view. `base` is the text of the object's base, or empty.
    pub(super) fn new(bytes: &'a [u8], base: &'a [u8]) -> Self {
        let (last, bytes) = bytes.split_last().unwrap_or((&0, bytes));
        let width = if last & Width::Wide as u8 == 0 { Width::Narrow } else { Width::Wide };
        let record = bytes.len().saturating_sub(width.size(RECORD));
        Self { bytes, base, record: &bytes[record..], width, flags: *last }
    }

    pub(super) fn is_compressed(self) -> bool {
        self.flags & COMPRESSED != 0
    }

    pub(super) fn repeats_annotations(self) -> bool {
        self.flags & REPEATS_ANNOTATIONS != 0
    }

    /// Returns the spans of all indexed texts: fields, labels, owners, finalizers.
    pub(super) fn texts(self) -> impl Iterator<Item = Span> {
        let fields = (0..FIELDS).map(move |field| self.width.text(self.record, field * TEXT));
        let labels = (0..self.labels()).map(move |number| self.label_spans(number));
        let owners = (0..self.owners()).map(move |number| self.owner(number));
        let finalizers = (0..self.finalizers()).map(move |number| self.finalizer_span(number));
        fields
            .chain(labels.flat_map(|(key, value)| [key, value]))
            .chain(owners.flat_map(|owner| [owner.api_version, owner.kind, owner.name, owner.uid]))
            .chain(finalizers)
    }

    pub(super) fn facts(self) -> IndexFacts {
        IndexFacts {
            generation: self.generation(),
            json_length: self.json_length(),
            labels: self.labels(),
            owners: (0..self.owners()).map(|number| self.owner(number).flags).collect(),
            finalizers: self.finalizers(),
            repeats_annotations: self.repeats_annotations(),
        }
    }

    /// Returns the body: the JSON, the own texts, or the compressed bytes.
    pub(super) fn body(self) -> &'a [u8] {
        let length = self.width.number(self.record, BODY, GENERATION - BODY) as usize;
        self.bytes.get(..length).unwrap_or_default()
    }

    /// Returns the operations of an object with a base, if the object is not compressed.
    pub(super) fn operations(self) -> &'a [u8] {
        self.bytes.get(self.body().len()..self.tables()).unwrap_or_default()
    }

    /// Returns all bytes before the tables, of an object that is not compressed.
    pub(super) fn stored(self) -> &'a [u8] {
        self.bytes.get(..self.tables()).unwrap_or_default()
    }

    pub(super) fn text(self, span: Span) -> &'a [u8] {
        span.text(self.bytes, self.base)
    }

    #[inline]
    pub(super) fn field(self, field: Field) -> &'a [u8] {
        self.text(self.width.text(self.record, field as usize * TEXT))
    }

    pub(super) fn generation(self) -> i64 {
        self.width.number(self.record, GENERATION, JSON_LENGTH - GENERATION) as i64
    }

    pub(super) fn json_length(self) -> usize {
        self.width.number(self.record, JSON_LENGTH, COUNTS - JSON_LENGTH) as usize
    }

    pub(super) fn labels(self) -> usize {
        self.count(0)
    }

    fn label_spans(self, number: usize) -> (Span, Span) {
        let record = self.table(0, LABEL, number);
        (self.width.text(record, 0), self.width.text(record, TEXT))
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
        let text = |number| self.width.text(record, number * TEXT);
        let flags = self.width.number(record, 4 * TEXT, 1) as u8;
        OwnerRecord { api_version: text(0), kind: text(1), name: text(2), uid: text(3), flags }
    }

    pub(super) fn finalizers(self) -> usize {
        self.count(2)
    }

    fn finalizer_span(self, number: usize) -> Span {
        self.width.text(self.table(self.labels() * LABEL + self.owners() * OWNER, TEXT, number), 0)
    }

    pub(super) fn finalizer(self, number: usize) -> &'a [u8] {
        self.text(self.finalizer_span(number))
    }

    fn count(self, number: usize) -> usize {
        self.width.number(self.record, COUNTS + number, 1) as usize
    }

    /// Returns the offset of the first table.
    fn tables(self) -> usize {
        let tables = self.labels() * LABEL + self.owners() * OWNER + self.finalizers() * TEXT;
        self.bytes.len().saturating_sub(self.width.size(RECORD + tables))
    }

    /// Returns a record of the table that begins `start` bytes after the first table. `start` and `size` are those of a narrow index.
    fn table(self, start: usize, size: usize, number: usize) -> &'a [u8] {
        let at = self.tables() + self.width.size(start + number * size);
        self.bytes.get(at..at + self.width.size(size)).unwrap_or_default()
    }
}
