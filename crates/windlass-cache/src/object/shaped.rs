//! Objects that are stored as their own values and a shape that they share with others.
//!
//! The bytes are: the offset of the values, in two bytes; a bit for each hole of the shape, set if the value is not the usual
//! one; the lengths of those values as varints; the values.

use std::sync::Arc;

use triomphe::ThinArc;

use super::{
    RawObject,
    layout::{Form, short},
};
use crate::scan::{Field, HoleId, Own, OwnerHoles, Place, Shape, integer};

/// The length of the offset of the values.
const START: usize = 2;

/// A view of an object with a shape.
#[derive(Clone, Copy)]
pub(super) struct Shaped<'a> {
    shape: &'a Shape,
    bytes: &'a [u8],
}

impl<'a> Shaped<'a> {
    pub(super) fn new(shape: &'a Shape, bytes: &'a [u8]) -> Self {
        Self { shape, bytes }
    }

    pub(super) fn field(self, field: Field) -> &'a [u8] {
        self.optional(self.shape.fields().texts[field as usize])
    }

    fn bits(self) -> &'a [u8] {
        self.bytes.get(START..START + self.shape.holes().div_ceil(8)).unwrap_or_default()
    }

    /// Returns the holes whose values are not the usual ones, with their values.
    fn own_values(self) -> impl Iterator<Item = (usize, &'a [u8])> {
        let bits = self.bits();
        let mut lengths = self.bytes.get(START + bits.len()..).unwrap_or_default();
        let mut start = short(self.bytes, 0) as usize;
        let chunks = bits.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let holes =
            chunks.enumerate().flat_map(|(number, word)| ones(word).map(move |bit| number * 64 + bit));
        holes.map(move |hole| {
            let length = take_length(&mut lengths);
            let value = self.bytes.get(start..start + length).unwrap_or_default();
            start += length;
            (hole, value)
        })
    }

    /// Returns the value in a hole.
    pub(super) fn value(self, hole: HoleId) -> &'a [u8] {
        let hole = usize::from(hole);
        let bits = self.bits();
        let (before, bit) = (bits.get(..hole / 8).unwrap_or_default(), 1 << (hole % 8));
        let byte = bits.get(hole / 8).copied().unwrap_or_default();
        if byte & bit == 0 {
            return self.shape.text().get(self.shape.usual(hole)).unwrap_or_default();
        }
        let own = before.iter().map(|byte| byte.count_ones()).sum::<u32>() + (byte & (bit - 1)).count_ones();
        let mut lengths = self.bytes.get(START + bits.len()..).unwrap_or_default();
        let skipped: usize = (0..own).map(|_| take_length(&mut lengths)).sum();
        let start = short(self.bytes, 0) as usize + skipped;
        self.bytes.get(start..start + take_length(&mut lengths)).unwrap_or_default()
    }

    pub(super) fn optional(self, hole: Option<HoleId>) -> &'a [u8] {
        hole.map_or(&[], |hole| self.value(hole))
    }

    pub(super) fn json_length(self) -> usize {
        self.moved(usize::MAX, self.shape.text().len())
    }

    /// Maps an offset in the shape's text, after a number of holes, to the offset in the JSON.
    fn moved(self, holes: usize, offset: usize) -> usize {
        let own = self.own_values().take_while(|&(hole, _)| hole < holes);
        own.fold(offset, |offset, (hole, value)| offset + value.len() - self.shape.usual(hole).len())
    }

    pub(super) fn json(self) -> Vec<u8> {
        let text = self.shape.text();
        let mut json = Vec::with_capacity(self.json_length());
        let mut from = 0;
        for (hole, value) in self.own_values() {
            let usual = self.shape.usual(hole);
            json.extend_from_slice(text.get(from..usual.start).unwrap_or_default());
            json.extend_from_slice(value);
            from = usual.end;
        }
        json.extend_from_slice(text.get(from..).unwrap_or_default());
        json
    }

    /// Returns the range of the annotations in the JSON.
    pub(super) fn annotations(self) -> Option<std::ops::Range<usize>> {
        let place = |place: Place| self.moved(place.holes.into(), self.shape.offset(place));
        let (start, end) = self.shape.fields().annotations?;
        Some(place(start)..place(end)).filter(|range| !range.is_empty())
    }

    pub(super) fn generation(self) -> i64 {
        integer(self.optional(self.shape.fields().generation)).unwrap_or_default()
    }

    pub(super) fn labels(self) -> usize {
        self.shape.fields().labels.len()
    }

    pub(super) fn label(self, number: usize) -> (&'a [u8], &'a [u8]) {
        let Some(&(key, hole)) = self.shape.fields().labels.get(number) else { return (&[], &[]) };
        let key = self.shape.text().get(key.offset as usize..(key.offset + key.length) as usize);
        (key.unwrap_or_default(), self.value(hole))
    }

    pub(super) fn owners(self) -> &'a [OwnerHoles] {
        &self.shape.fields().owners
    }

    pub(super) fn is_true(self, hole: Option<HoleId>) -> bool {
        self.optional(hole) == b"true"
    }

    pub(super) fn finalizers(self) -> &'a [HoleId] {
        &self.shape.fields().finalizers
    }
}

/// Returns the positions of the set bits.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

fn put_length(bytes: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}

#[inline]
fn take_length(lengths: &mut &[u8]) -> usize {
    let (mut length, mut shift) = (0, 0);
    while let Some((&byte, rest)) = lengths.split_first() {
        *lengths = rest;
        length |= usize::from(byte & 0x7F) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    length
}

/// Assembles an object from its own values. `bytes` is working memory.
pub(super) fn assemble(shape: &Arc<Shape>, own: &[Own], source: &[u8], bytes: &mut Vec<u8>) -> RawObject {
    bytes.clear();
    bytes.resize(START + shape.holes().div_ceil(8), 0);
    for own in own {
        bytes[START + usize::from(own.hole) / 8] |= 1 << (own.hole % 8);
        put_length(bytes, own.length());
    }
    let start = bytes.len() as u16;
    bytes[..START].copy_from_slice(&start.to_le_bytes());
    own.iter().for_each(|own| bytes.extend_from_slice(own.of(source)));
    RawObject(ThinArc::from_header_and_slice(Form::Shaped(shape.clone()), bytes))
}
