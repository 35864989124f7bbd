//! Objects with a compressed body. The index stays readable without decompression.

use std::sync::Arc;

use triomphe::ThinArc;

use super::{
    Base, Dictionary, RawObject, difference,
    layout::{IN_BASE, Span},
};

/// Compresses objects with a dictionary.
#[derive(Clone, Debug)]
pub(crate) struct Compressor {
    /// The base of compressed objects that share no text: without text, with the dictionary.
    base: Arc<Base>,
    dictionary: Arc<Dictionary>,
}

impl Compressor {
    pub(crate) fn new(dictionary: Dictionary) -> Self {
        let dictionary = Arc::new(dictionary);
        Self { base: Arc::new(Base::of_dictionary(dictionary.clone())), dictionary }
    }

    pub(crate) fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// Compresses an object. Returns `None` if the object is compressed already.
    ///
    /// All objects with a base have the same dictionary: the dictionary of the first object that was compressed.
    pub(crate) fn compress(&self, object: &RawObject) -> Option<RawObject> {
        let layout = object.layout();
        if layout.is_compressed() {
            return None;
        }
        let base = object.base().unwrap_or(&self.base);
        let (stored, own) = (layout.stored(), layout.body().len());
        let mut bytes = base.dictionary_or(&self.dictionary).compress(stored).ok()?;
        for length in [stored.len(), own] {
            bytes.extend_from_slice(&(length as u32).to_le_bytes());
        }
        let body = bytes.len();
        let keep = |span: Span| {
            if span.offset & IN_BASE != 0 {
                return span;
            }
            let offset = bytes.len();
            bytes.extend_from_slice(layout.text(span));
            Span { length: span.length, ..Span::new(offset, 0) }
        };
        let texts: Vec<_> = layout.texts().map(keep).collect();
        layout.facts().put(&mut bytes, body, &texts, true);
        Some(RawObject(ThinArc::from_header_and_slice(Some(base.clone()), &bytes)))
    }
}

impl RawObject {
    /// Returns the bytes that [`Compressor::compress`] compresses.
    pub(crate) fn stored(&self) -> &[u8] {
        self.layout().stored()
    }
}

/// Returns the JSON of `length` bytes of an object with a compressed body.
pub(super) fn expand(body: &[u8], base: &Base, length: usize) -> Vec<u8> {
    let Some((compressed, stored, own)) = split(body) else { return Vec::new() };
    let mut stored = base.decompress(compressed, stored);
    let own = own.min(stored.len());
    if base.text().is_empty() {
        stored.truncate(own);
        return stored;
    }
    let (own, operations) = stored.split_at(own);
    difference::expand(own, operations, base, length)
}

/// Splits a body into the compressed bytes, and the lengths before the compression: of all bytes, and of the JSON or the own texts.
fn split(body: &[u8]) -> Option<(&[u8], usize, usize)> {
    let (rest, own) = body.split_last_chunk()?;
    let (compressed, stored) = rest.split_last_chunk()?;
    Some((compressed, u32::from_le_bytes(*stored) as usize, u32::from_le_bytes(*own) as usize))
}
