//! Reads the format that `cargo xtask codegen` writes: variable-length numbers (seven bits a byte, the lowest first),
//! and strings as indexes into a table.

use std::sync::Arc;

/// A cursor into the body of the blob.
#[derive(Clone)]
pub(super) struct Reader {
    blob: Arc<[u8]>,
    strings: Arc<[(u32, u32)]>,
    at: usize,
}

impl Reader {
    /// Reads the table of strings and returns a cursor at the start of the body.
    pub(super) fn open(blob: Arc<[u8]>) -> Option<Self> {
        let mut reader = Self { blob, strings: Arc::new([]), at: 0 };
        let lengths: Vec<u32> = (0..reader.number()?).map(|_| reader.number()).collect::<Option<_>>()?;
        let mut start = u32::try_from(reader.at).ok()?;
        let spans = lengths.iter().map(|length| {
            let span = (start, start + length);
            start += length;
            span
        });
        reader.strings = spans.collect();
        reader.at = start as usize;
        Some(reader)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = *self.blob.get(self.at)?;
            self.at += 1;
            value |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }

    pub(super) fn text(&mut self) -> Option<&str> {
        let number = self.number()?;
        self.string(number)
    }

    pub(super) fn texts<T: for<'t> From<&'t str>>(&mut self) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| self.text().map(T::from)).collect()
    }

    /// Returns a string by its index.
    pub(super) fn string(&self, number: u32) -> Option<&str> {
        let (start, end) = *self.strings.get(number as usize)?;
        std::str::from_utf8(self.blob.get(start as usize..end as usize)?).ok()
    }

    /// Returns a reader of the next length-prefixed part and skips the part in this reader.
    pub(super) fn part(&mut self) -> Option<Self> {
        let length = self.number()? as usize;
        let part = self.clone();
        self.at += length;
        Some(part)
    }

    /// Returns the current offset in the body.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns a reader of the same blob at another offset.
    pub(super) fn at(&self, position: usize) -> Self {
        Self { at: position, ..self.clone() }
    }
}
