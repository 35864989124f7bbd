//! Objects with compressed JSON, or with compressed differences from a base. The index stays readable without decompression.

use std::sync::Arc;

use triomphe::ThinArc;

use super::{
    Base, Dictionary, RawObject, difference,
    layout::{Form, IN_BASE, Span},
};

impl RawObject {
    /// Returns the bytes that [`Self::compress`] compresses.
    pub(crate) fn body(&self) -> &[u8] {
        self.layout().body()
    }

    /// Compresses the object. Returns `None` if the object is compressed already.
    pub(crate) fn compress(&self, dictionary: &Arc<Dictionary>) -> Option<Self> {
        if self.is_compressed() {
            return None;
        }
        let (layout, base) = (self.layout(), self.base().cloned());
        let mut bytes = dictionary.compress(layout.body()).ok()?;
        if base.is_some() {
            Lengths::of(layout.body(), layout.json()).put(&mut bytes);
        }
        let stored = Span::new(0, bytes.len());
        let mut keep = |span: Span| {
            if span.offset & IN_BASE != 0 {
                return span;
            }
            let offset = bytes.len();
            bytes.extend_from_slice(layout.text(span));
            Span { length: span.length, ..Span::new(offset, 0) }
        };
        let texts: Vec<_> = layout.texts().map(&mut keep).collect();
        layout.put_index(&mut bytes, stored, &texts);
        Some(Self(ThinArc::from_header_and_slice(Form::Compressed(dictionary.clone(), base), &bytes)))
    }
}

/// The lengths of the parts of compressed differences, stored behind the compressed bytes.
struct Lengths {
    body: u32,
    own: u32,
}

impl Lengths {
    fn of(body: &[u8], operations: &[u8]) -> Self {
        Self { body: body.len() as u32, own: (body.len() - operations.len()) as u32 }
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.body.to_le_bytes());
        bytes.extend_from_slice(&self.own.to_le_bytes());
    }

    /// Splits stored bytes into the lengths and the compressed bytes.
    fn take(stored: &[u8]) -> Option<(Self, &[u8])> {
        let (rest, own) = stored.split_last_chunk()?;
        let (rest, body) = rest.split_last_chunk()?;
        Some((Self { body: u32::from_le_bytes(*body), own: u32::from_le_bytes(*own) }, rest))
    }
}

/// Returns the JSON of `length` bytes of an object that is stored as compressed differences.
pub(super) fn expand(stored: &[u8], dictionary: &Dictionary, base: &Base, length: usize) -> Vec<u8> {
    let Some((lengths, compressed)) = Lengths::take(stored) else { return Vec::new() };
    let body = dictionary.decompress(compressed, lengths.body as usize);
    let (own, operations) = body.split_at_checked(lengths.own as usize).unwrap_or_default();
    difference::expand(own, operations, base, length)
}
