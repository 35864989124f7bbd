//! The differences between an object's JSON and the text of a base.
//!
//! The JSON is a sequence of own texts and of ranges that are copied from the base. The stored bytes are the
//! own texts and, after them, an operation for each own text and the copy that follows: a [`Head`] with the form of the own text and
//! the start of the copy, and the length of the copy.
//!
//! An indexed text lies either in a single own text or in a single copy: a read of an indexed text is a
//! slice.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use super::{
    Base,
    assembler::NewObject,
    layout::{IN_BASE, Layout, Span},
    own_text::{FEWEST_DIGITS, OwnText},
};

/// Finds the differences between objects and bases, and reuses the working memory.
#[derive(Debug)]
pub(super) struct Difference {
    /// The texts that the object does not share with the base; at the end the stored bytes.
    own: Vec<u8>,
    operations: Vec<u8>,
    /// The spans of the indexed texts, in the order of [`Layout::texts`].
    texts: Vec<Span>,
    /// The spans of the old state's texts.
    old_texts: Vec<Span>,
    /// The numbers of the indexed texts, in the order of the JSON.
    order: Vec<u16>,
    /// The own text since the last copy.
    pending: OwnText,
    /// The bytes of a packed text.
    packed: Vec<u8>,
    /// A copy that may still grow.
    copy: Match,
    /// The end of the last written copy.
    copied: usize,
}

impl Default for Difference {
    fn default() -> Self {
        Self {
            own: Vec::new(),
            operations: Vec::new(),
            texts: Vec::new(),
            old_texts: Vec::new(),
            order: Vec::new(),
            pending: NOTHING,
            packed: Vec::new(),
            copy: Match::default(),
            copied: 0,
        }
    }
}

const NOTHING: OwnText = OwnText::Literal(0);

/// A range of the base.
#[derive(Clone, Copy, Debug, Default)]
struct Match {
    start: usize,
    length: usize,
}

/// The places up to which the JSON has been compared with the base.
struct Walk<'a> {
    json: &'a [u8],
    base: &'a Base,
    at: usize,
    in_base: usize,
    /// The bytes before both places are equal.
    synced: bool,
    limit: Limit,
}

/// The most bytes of an object that may differ from a base.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    total: usize,
    /// The bytes that may differ at the start of the object.
    at_start: usize,
    /// The bytes that may differ besides, for each [`Limit::UNIT`] bytes that have been compared.
    rate: usize,
}

impl Limit {
    const UNIT: usize = 1 << 10;
    /// This part of a growing limit may differ at the start of the object.
    const AT_START: usize = 16;

    pub(super) fn new(total: usize) -> Self {
        Self { total, at_start: total, rate: 0 }
    }

    /// Returns a limit that grows with the compared part of an object of `length` bytes: the comparison with an unlike base ends early.
    pub(super) fn growing(total: usize, length: usize) -> Self {
        Self { total, at_start: total / Self::AT_START, rate: total * Self::UNIT / length.max(1) }
    }

    /// Returns the bytes that may differ before a place in the object.
    #[inline]
    fn up_to(self, place: usize) -> usize {
        self.at_start + place * self.rate / Self::UNIT
    }
}

/// A shorter match after an own text costs more than it saves.
const SHORTEST: usize = 4;
/// The length of the texts that are compared where a value has ended.
const ENOUGH: usize = 8;

impl Difference {
    /// Returns the stored bytes of an object. Returns `None` if more bytes than `limit` differ from the base,
    /// or if the JSON does not contain an indexed text literally. `old` is an earlier state of the object, stored as differences from the
    /// same base: the operations up to the first change are repeated.
    pub(super) fn encode(
        &mut self,
        object: &NewObject,
        base: &Base,
        limit: Limit,
        old: Option<Layout<'_>>,
    ) -> Option<&[u8]> {
        let json = object.json();
        if object.bytes.len() > json.len() {
            return None;
        }
        self.texts.clone_from(&object.texts);
        let texts = &self.texts;
        self.order.clear();
        self.order.extend((0..texts.len() as u16).filter(|&number| texts[usize::from(number)].length > 0));
        self.order.sort_unstable_by_key(|&number| texts[usize::from(number)].offset);
        (self.pending, self.copied, self.copy) = (NOTHING, 0, Match::default());
        self.own.clear();
        self.operations.clear();
        let mut walk = Walk { json, base, at: 0, in_base: 0, synced: true, limit };
        let repeated = old.and_then(|old| self.repeat(object, old, &mut walk)).unwrap_or_default();
        for place in repeated..self.order.len() {
            let number = usize::from(self.order[place]);
            let span = self.texts[number];
            if (span.offset as usize) < walk.at {
                return None;
            }
            self.pass(&mut walk, span.offset as usize)?;
            self.texts[number] = self.value(&mut walk, span.range().end);
        }
        self.pass(&mut walk, json.len())?;
        if self.own.len() > limit.total {
            return None;
        }
        if self.copy.length > 0 || !matches!(self.pending, OwnText::Literal(_)) {
            self.write_copy(base);
        }
        let own = self.own.len();
        self.own.extend_from_slice(&self.operations);
        object.facts.put(&mut self.own, own, &self.texts, false);
        Some(&self.own)
    }

    /// Repeats the operations of the old state up to the first copy that differs. Returns the number of indexed texts before that copy.
    /// Returns `None`, and repeats nothing, if an indexed text has moved.
    fn repeat(&mut self, object: &NewObject, old: Layout<'_>, walk: &mut Walk<'_>) -> Option<usize> {
        if !object.facts.has_same_counts(old) {
            return None;
        }
        let base = walk.base.text();
        let mut operations = Operations::new(old.operations(), base);
        let (mut own, mut stored) = (0, operations.clone());
        let mut rest = walk.json;
        while let Some((form, copy)) = operations.next() {
            let Some((text, behind)) = rest.split_at_checked(form.length()) else { break };
            let Some(behind) = behind.strip_prefix(base.get(copy).unwrap_or_default()) else {
                break;
            };
            if !form.store(text, &mut self.own) {
                break;
            }
            own = self.own.len();
            (rest, stored) = (behind, operations.clone());
        }
        self.own.truncate(own);
        let at = walk.json.len() - rest.len();
        self.old_texts.clear();
        self.old_texts.extend(old.texts());
        let own = &self.own;
        let texts = self.order.iter().map(|&number| usize::from(number));
        let before = texts.clone().take_while(|&number| (self.texts[number].offset as usize) < at);
        let is_same =
            |number: usize| self.texts[number].text(walk.json, &[]) == self.old_texts[number].text(own, base);
        if !before.clone().all(is_same) {
            self.own.clear();
            return None;
        }
        let repeated = before.count();
        for &number in &self.order[..repeated] {
            self.texts[usize::from(number)] = self.old_texts[usize::from(number)];
        }
        let old = old.operations();
        self.operations.extend_from_slice(&old[..old.len() - stored.stored.len()]);
        self.copied = stored.copied;
        (walk.at, walk.in_base) = (at, stored.copied);
        Some(repeated)
    }

    /// Passes text that is not indexed, up to `end`. Returns `None` if too many bytes differ.
    fn pass(&mut self, walk: &mut Walk<'_>, end: usize) -> Option<()> {
        while walk.at < end {
            let rest = &walk.json[walk.at..end];
            let length = common(rest, walk.base.text().get(walk.in_base..).unwrap_or_default());
            if length > 0 {
                self.push_match(walk, length);
                walk.synced = true;
                continue;
            }
            if self.own.len() > walk.limit.up_to(walk.at) {
                return None;
            }
            let Some((text, in_base)) = walk.resume(end) else {
                self.push_own(walk.base, rest);
                (walk.at, walk.synced) = (end, false);
                break;
            };
            if !self.push_packed(walk, text) {
                self.push_own(walk.base, &walk.json[walk.at..text]);
            }
            (walk.at, walk.in_base) = (text, in_base);
        }
        Some(())
    }

    /// Adds the text up to the quote at `end`, if the text is a time or consists of digits. A part of the text that was copied from the
    /// base is no longer copied.
    fn push_packed(&mut self, walk: &Walk<'_>, end: usize) -> bool {
        let digits = end - walk.at;
        let even = digits + digits % 2;
        let form = match walk.json[end - 1] {
            b'Z' => OwnText::Time,
            _ if even >= FEWEST_DIGITS => OwnText::Hex(even / 2),
            _ => return false,
        };
        let start = end.checked_sub(form.length()).filter(|start| *start <= walk.at);
        let Some(start) = start.filter(|start| start + self.copy.length >= walk.at) else { return false };
        self.packed.clear();
        if !form.store(&walk.json[start..end], &mut self.packed) {
            return false;
        }
        self.copy.length -= walk.at - start;
        self.write_copy(walk.base);
        self.own.append(&mut self.packed);
        self.pending = form;
        true
    }

    /// Passes an indexed text, which a quote follows, and returns its place.
    fn value(&mut self, walk: &mut Walk<'_>, end: usize) -> Span {
        let value = &walk.json[walk.at..end];
        let in_base = walk.base.text().get(walk.in_base..).unwrap_or_default();
        if in_base.starts_with(value) && in_base.get(value.len()) == Some(&b'"') {
            let start = walk.in_base;
            if self.push_match(walk, value.len()) {
                return Span::new(start | IN_BASE as usize, value.len());
            }
        } else {
            self.push_own(walk.base, value);
            walk.at = end;
            if walk.synced {
                walk.in_base += memchr(b'"', in_base).unwrap_or_default();
            }
        }
        Span::new(self.own.len() - value.len(), value.len())
    }

    /// Adds a text that is equal in the JSON and the base; returns whether as a copy.
    fn push_match(&mut self, walk: &mut Walk<'_>, length: usize) -> bool {
        let start = walk.in_base;
        let text = &walk.json[walk.at..walk.at + length];
        walk.at += length;
        walk.in_base += length;
        let continues = self.copy.length > 0 && self.copy.start + self.copy.length == start;
        if continues {
            self.copy.length += length;
        } else if length < SHORTEST && self.copy.length == 0 {
            self.push_own(walk.base, text);
            return false;
        } else {
            if self.copy.length > 0 {
                self.write_copy(walk.base);
            }
            self.copy = Match { start, length };
        }
        true
    }

    fn push_own(&mut self, base: &Base, text: &[u8]) {
        self.own.extend_from_slice(text);
        match self.pending {
            OwnText::Literal(before) if self.copy.length == 0 => {
                self.pending = OwnText::Literal(before + text.len());
            }
            _ => {
                self.write_copy(base);
                self.pending = OwnText::Literal(text.len());
            }
        }
    }

    /// Writes the operation for the pending own text and the pending copy, if there are any.
    fn write_copy(&mut self, base: &Base) {
        let Match { start, length } = std::mem::take(&mut self.copy);
        let own = std::mem::replace(&mut self.pending, NOTHING);
        if own == NOTHING && length == 0 {
            return;
        }
        let start = if length == 0 { self.copied } else { start };
        Head::new(own, self.copied, start, base.text()).put(&mut self.operations);
        put_number(&mut self.operations, length);
        self.copied = start + length;
    }
}

impl Walk<'_> {
    /// Returns the next places in the JSON, before `end`, and in the base from which both are equal.
    fn resume(&self, end: usize) -> Option<(usize, usize)> {
        // Usually a value differs, and the text after the value is equal.
        let quote = self.at + memchr(b'"', &self.json[self.at..end])?;
        let rest = self.base.text().get(self.in_base..).unwrap_or_default();
        if let Some(offset) = memchr(b'"', rest)
            && is_alike(&self.json[quote..end], &rest[offset..])
        {
            return Some((quote, self.in_base + offset));
        }
        let quotes = memchr_iter(b'"', &self.json[quote..end]).map(|offset| quote + offset);
        quotes
            .filter_map(|quote| Some((quote, Base::anchor(self.json, quote, end)?)))
            .find_map(|(quote, anchor)| Some((quote, self.base.find(anchor, self.in_base)?)))
    }
}

/// Returns whether the starts of two texts are equal.
fn is_alike(one: &[u8], other: &[u8]) -> bool {
    match (one.first_chunk::<ENOUGH>(), other.first_chunk::<ENOUGH>()) {
        (Some(one), Some(other)) => one == other,
        _ => other.starts_with(&one[..one.len().min(ENOUGH)]),
    }
}

/// The begin of an operation.
///
/// The low bits of the first byte are the [`Start`], and the high bits the form of the own text: the length of a short text, or
/// [`LONG`] or [`HEX`] before a length, or [`TIME`] or [`DIGEST`].
struct Head {
    own: OwnText,
    start: Start,
    /// The distance from the end of the last copy to the start of the copy, if the start does not imply the distance.
    distance: isize,
}

/// The start of a copy in the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// After a text with the length of the own text.
    Aligned = 0,
    /// At the next quote.
    Quote = 1,
    /// Anywhere else: a distance follows.
    Distant = 2,
}

const STARTS: u8 = 4;
/// A literal text whose length follows.
const LONG: usize = 60;
const TIME: usize = 61;
/// Digits whose number of bytes follows.
const HEX: usize = 62;
/// The digits of a SHA-256.
const DIGEST: usize = 63;
const DIGEST_BYTES: usize = 32;

impl Head {
    fn new(own: OwnText, copied: usize, start: usize, base: &[u8]) -> Self {
        let distance = start as isize - copied as isize;
        let start = if start == copied + own.length() {
            Start::Aligned
        } else if next_quote(base, copied) == start {
            Start::Quote
        } else {
            Start::Distant
        };
        Self { own, start, distance }
    }

    fn put(&self, operations: &mut Vec<u8>) {
        let (form, length) = match self.own {
            OwnText::Literal(length) if length < LONG => (length, None),
            OwnText::Literal(length) => (LONG, Some(length)),
            OwnText::Time => (TIME, None),
            OwnText::Hex(DIGEST_BYTES) => (DIGEST, None),
            OwnText::Hex(bytes) => (HEX, Some(bytes)),
        };
        operations.push((form as u8 * STARTS) | self.start as u8);
        length.into_iter().for_each(|length| put_number(operations, length));
        if self.start == Start::Distant {
            let zigzag = self.distance << 1 ^ self.distance >> (isize::BITS - 1);
            put_number(operations, zigzag as usize);
        }
    }
}

/// Returns the place of the first quote from `from` on, or the end.
fn next_quote(base: &[u8], from: usize) -> usize {
    let rest = base.get(from..).unwrap_or_default();
    from + memchr(b'"', rest).unwrap_or(rest.len())
}

/// Reads the stored operations: for each own text, the form of the text, and the range of the base that is copied after the text.
#[derive(Clone)]
struct Operations<'a> {
    stored: &'a [u8],
    base: &'a [u8],
    /// The end of the last copy.
    copied: usize,
}

impl<'a> Operations<'a> {
    fn new(stored: &'a [u8], base: &'a [u8]) -> Self {
        Self { stored, base, copied: 0 }
    }
}

impl Iterator for Operations<'_> {
    type Item = (OwnText, Range<usize>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (&head, rest) = self.stored.split_first()?;
        self.stored = rest;
        let own = match usize::from(head / STARTS) {
            LONG => OwnText::Literal(take_number(&mut self.stored)),
            TIME => OwnText::Time,
            DIGEST => OwnText::Hex(DIGEST_BYTES),
            HEX => OwnText::Hex(take_number(&mut self.stored)),
            length => OwnText::Literal(length),
        };
        let start = match head % STARTS {
            0 => self.copied.wrapping_add(own.length()),
            1 => next_quote(self.base, self.copied),
            _ => {
                let zigzag = take_number(&mut self.stored);
                self.copied.wrapping_add_signed((zigzag >> 1) as isize ^ -((zigzag & 1) as isize))
            }
        };
        self.copied = start.wrapping_add(take_number(&mut self.stored));
        Some((own, start..self.copied))
    }
}

/// Returns the JSON of `length` bytes that has these own texts and copies.
pub(super) fn expand(mut own_texts: &[u8], operations: &[u8], base: &Base, length: usize) -> Vec<u8> {
    let mut json = Vec::with_capacity(length);
    for (own, copy) in Operations::new(operations, base.text()) {
        let (text, rest) = own_texts.split_at_checked(own.stored()).unwrap_or((own_texts, &[]));
        own.expand(text, &mut json);
        own_texts = rest;
        json.extend_from_slice(base.text().get(copy).unwrap_or_default());
    }
    json.extend_from_slice(own_texts);
    json
}

/// Returns the length of the common start of two texts.
fn common(one: &[u8], other: &[u8]) -> usize {
    let length = one.len().min(other.len());
    let (one, other) = (&one[..length], &other[..length]);
    let blocks = one.as_chunks::<32>().0.iter().zip(other.as_chunks::<32>().0);
    let mut at = 32 * blocks.take_while(|(one, other)| one == other).count();
    let words = one[at..].as_chunks::<8>().0.iter().zip(other[at..].as_chunks::<8>().0);
    for (one, other) in words {
        let different = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if different != 0 {
            return at + different.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + one[at..].iter().zip(&other[at..]).take_while(|(one, other)| one == other).count()
}

fn put_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> usize {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= usize::from(byte & 0x7F) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    number
}
