//! The differences between an object's JSON and the text of a base.
//!
//! The JSON is a sequence of own texts and of ranges that are copied from the base. The stored bytes are the
//! own texts and, after them, three variable-length integers for each own text and the copy that follows: the
//! length of the own text, the distance from the end of the last copy to the start of this copy in the base,
//! and the length of the copy.
//!
//! An indexed text lies either in a single own text or in a single copy: a read of an indexed text is a
//! slice.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use super::{
    Base,
    layout::{IN_BASE, Layout, Span},
};

/// Finds the differences between objects and bases, and reuses the working memory.
#[derive(Debug, Default)]
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
    /// The length of the own text since the last copy.
    pending: usize,
    /// A copy that may still grow.
    copy: Match,
    /// The end of the last written copy.
    copied: usize,
}

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
    /// The most bytes that may differ.
    limit: usize,
}

/// A shorter match after an own text costs more than it saves.
const SHORTEST: usize = 4;
/// The length of the texts that are compared where a value has ended.
const ENOUGH: usize = 8;

impl Difference {
    /// Returns the stored bytes of an object. Returns `None` if more than `limit` bytes differ from the base,
    /// or if the JSON does not contain an indexed text literally. `old` is an earlier state of the object, stored as differences from the
    /// same base: the operations up to the first change are repeated.
    pub(super) fn encode(
        &mut self,
        object: Layout<'_>,
        base: &Base,
        limit: usize,
        old: Option<Layout<'_>>,
    ) -> Option<&[u8]> {
        let json = object.json();
        self.texts.clear();
        self.texts.extend(object.texts());
        if self.texts.iter().any(|text| text.range().end > json.len()) {
            return None;
        }
        let texts = &self.texts;
        self.order.clear();
        self.order.extend((0..texts.len() as u16).filter(|&number| texts[usize::from(number)].length > 0));
        self.order.sort_unstable_by_key(|&number| texts[usize::from(number)].offset);
        (self.pending, self.copied, self.copy) = (0, 0, Match::default());
        self.own.clear();
        self.operations.clear();
        let mut walk = Walk { json, base, at: 0, in_base: 0, synced: true, limit };
        let repeated = old.and_then(|old| self.repeat(object, old, &mut walk)).unwrap_or_default();
        for place in repeated..self.order.len() {
            let number = usize::from(self.order[place]);
            let span = self.texts[number];
            if (span.offset as usize) < walk.at || self.own.len() > limit {
                return None;
            }
            self.pass(&mut walk, span.offset as usize);
            self.texts[number] = self.value(&mut walk, span.range().end);
        }
        self.pass(&mut walk, json.len());
        if self.own.len() > limit {
            return None;
        }
        if self.pending + self.copy.length > 0 {
            self.write_copy();
        }
        let operations = Span::new(self.own.len(), self.operations.len());
        self.own.extend_from_slice(&self.operations);
        object.put_index(&mut self.own, operations, &self.texts);
        Some(&self.own)
    }

    /// Repeats the operations of the old state up to the first copy that differs. Returns the number of indexed texts before that copy.
    /// Returns `None`, and repeats nothing, if an indexed text has moved.
    fn repeat(&mut self, object: Layout<'_>, old: Layout<'_>, walk: &mut Walk<'_>) -> Option<usize> {
        if object.counts() != old.counts() {
            return None;
        }
        let mut operations = Operations::new(old.json());
        let (mut own, mut stored) = (0, operations.clone());
        let mut rest = walk.json;
        while let Some((length, copy)) = operations.next() {
            let Some((text, behind)) = rest.split_at_checked(length) else { break };
            let Some(behind) = behind.strip_prefix(walk.base.text().get(copy).unwrap_or_default()) else {
                break;
            };
            self.own.extend_from_slice(text);
            own += length;
            (rest, stored) = (behind, operations.clone());
        }
        let at = walk.json.len() - rest.len();
        self.old_texts.clear();
        self.old_texts.extend(old.texts());
        let copies = Layout::without_index(&self.own[..own], walk.base.text());
        let texts = self.order.iter().map(|&number| usize::from(number));
        let before = texts.clone().take_while(|&number| (self.texts[number].offset as usize) < at);
        let is_same = |number: usize| object.text(self.texts[number]) == copies.text(self.old_texts[number]);
        if !before.clone().all(is_same) {
            self.own.clear();
            return None;
        }
        let repeated = before.count();
        for &number in &self.order[..repeated] {
            self.texts[usize::from(number)] = self.old_texts[usize::from(number)];
        }
        self.operations.extend_from_slice(&old.json()[..old.json().len() - stored.stored.len()]);
        self.copied = stored.copied;
        (walk.at, walk.in_base) = (at, stored.copied);
        Some(repeated)
    }

    /// Passes text that is not indexed, up to `end`.
    fn pass(&mut self, walk: &mut Walk<'_>, end: usize) {
        while walk.at < end {
            if self.own.len() > walk.limit {
                walk.at = end;
                return;
            }
            let rest = &walk.json[walk.at..end];
            let length = common(rest, walk.base.text().get(walk.in_base..).unwrap_or_default());
            if length > 0 {
                self.push_match(walk, length);
                walk.synced = true;
                continue;
            }
            let Some((text, in_base)) = walk.resume(end) else {
                self.push_own(rest);
                (walk.at, walk.synced) = (end, false);
                return;
            };
            self.push_own(&walk.json[walk.at..text]);
            (walk.at, walk.in_base) = (text, in_base);
        }
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
            self.push_own(value);
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
            self.push_own(text);
            return false;
        } else {
            if self.copy.length > 0 {
                self.write_copy();
            }
            self.copy = Match { start, length };
        }
        true
    }

    fn push_own(&mut self, text: &[u8]) {
        if self.copy.length > 0 {
            self.write_copy();
        }
        self.own.extend_from_slice(text);
        self.pending += text.len();
    }

    fn write_copy(&mut self) {
        let Match { start, length } = std::mem::take(&mut self.copy);
        let distance = if length == 0 { 0 } else { start as isize - self.copied as isize };
        let own = std::mem::take(&mut self.pending);
        let distance = (distance << 1 ^ distance >> (isize::BITS - 1)) as usize;
        if own | distance | length < 0x80 {
            self.operations.extend_from_slice(&[own as u8, distance as u8, length as u8]);
        } else {
            [own, distance, length].into_iter().for_each(|number| put_number(&mut self.operations, number));
        }
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

/// Reads the stored operations: for each own text, the length of the text, and the range of the base that is copied after the text.
#[derive(Clone)]
struct Operations<'a> {
    stored: &'a [u8],
    /// The end of the last copy.
    copied: usize,
}

impl<'a> Operations<'a> {
    fn new(stored: &'a [u8]) -> Self {
        Self { stored, copied: 0 }
    }

    /// Returns three numbers. Usually, each takes a byte.
    #[inline]
    fn numbers(&mut self) -> [usize; 3] {
        match self.stored {
            [own, distance, length, rest @ ..] if (own | distance | length) < 0x80 => {
                self.stored = rest;
                [own, distance, length].map(|&byte| usize::from(byte))
            }
            _ => [(); 3].map(|()| take_number(&mut self.stored)),
        }
    }
}

impl Iterator for Operations<'_> {
    type Item = (usize, Range<usize>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.stored.is_empty() {
            return None;
        }
        let [own, distance, length] = self.numbers();
        let start = self.copied.wrapping_add_signed((distance >> 1) as isize ^ -((distance & 1) as isize));
        self.copied = start.wrapping_add(length);
        Some((own, start..self.copied))
    }
}

/// Returns the JSON of `length` bytes that has these own texts and copies.
pub(super) fn expand(mut own_texts: &[u8], operations: &[u8], base: &Base, length: usize) -> Vec<u8> {
    let mut json = Vec::with_capacity(length);
    for (own, copy) in Operations::new(operations) {
        let (text, rest) = own_texts.split_at_checked(own).unwrap_or((own_texts, &[]));
        json.extend_from_slice(text);
        own_texts = rest;
        json.extend_from_slice(base.text().get(copy).unwrap_or_default());
    }
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
