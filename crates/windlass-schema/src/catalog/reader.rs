//! Reads what `xtask codegen` packed: numbers of seven bits a byte, and strings by number.

use std::sync::Arc;

/// Stands somewhere in the blob's body.
#[derive(Clone)]
pub(super) struct Reader {
    blob: Arc<[u8]>,
    strings: Arc<[(u32, u32)]>,
    at: usize,
}

impl Reader {
    /// Reads the strings, and stands at the beginning of the body.
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

    /// A string by its number.
    pub(super) fn string(&self, number: u32) -> Option<&str> {
        let (start, end) = *self.strings.get(number as usize)?;
        std::str::from_utf8(self.blob.get(start as usize..end as usize)?).ok()
    }

    /// A reader of the next sized part, which this one steps over.
    pub(super) fn part(&mut self) -> Option<Self> {
        let length = self.number()? as usize;
        let part = self.clone();
        self.at += length;
        Some(part)
    }

    /// Where it stands.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// A reader that stands elsewhere.
    pub(super) fn at(&self, position: usize) -> Self {
        Self { at: position, ..self.clone() }
    }
}
