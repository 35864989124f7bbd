//! The bytes of a body that arrives in pieces.

use std::ops::Range;

use bytes::Bytes;

use super::value::OpenValue;
use crate::scan::ScanError;

/// The current piece, and a value that began in earlier pieces.
#[derive(Debug)]
pub(super) struct Buffer {
    piece: Bytes,
    at: usize,
    /// The part of the open value that was in earlier pieces.
    carried: Vec<u8>,
    open: Option<OpenValue>,
    limit: usize,
}

/// The location of a complete value.
#[derive(Clone, Debug)]
pub(super) enum Location {
    Piece(Range<usize>),
    Carried,
}

impl Buffer {
    /// Creates a buffer that rejects values longer than `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { piece: Bytes::new(), at: 0, carried: Vec::new(), open: None, limit }
    }

    /// Sets the next piece. The previous piece must be consumed.
    pub(super) fn push(&mut self, piece: Bytes) {
        debug_assert_eq!(self.at, self.piece.len(), "a piece came before the last one was read");
        self.piece = piece;
        self.at = 0;
    }

    /// Releases a consumed piece, so that the memory can be reused.
    pub(super) fn release(&mut self) {
        if self.at == self.piece.len() {
            self.piece = Bytes::new();
            self.at = 0;
        }
    }

    /// Returns the rest of the piece.
    pub(super) fn rest(&self) -> &[u8] {
        &self.piece[self.at..]
    }

    /// Returns the offset of the rest in the piece.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn advance(&mut self, length: usize) {
        self.at += length;
    }

    /// Returns whether a value has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn is_in_string(&self) -> bool {
        self.open.is_some_and(|open| open.is_in_string())
    }

    /// Skips white space and returns the next byte of the piece.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let rest = &self.piece[self.at..];
        let white = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += white;
        self.piece.get(self.at).copied()
    }

    /// Advances to the end of the value that begins here or began earlier. Returns `None` if the piece ends first.
    pub(super) fn value(&mut self) -> Result<Option<Location>, ScanError> {
        self.value_within(usize::MAX)
    }

    /// Works like [`Self::value`], but reads at most the next `length` bytes.
    pub(super) fn value_within(&mut self, length: usize) -> Result<Option<Location>, ScanError> {
        let begins_here = self.open.is_none();
        if begins_here {
            self.carried.clear();
            let Some(first) = self.peek() else { return Ok(None) };
            self.open = Some(OpenValue::new(first)?);
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        let rest = &self.piece[self.at..];
        let rest = &rest[..length.min(rest.len())];
        let end = open.feed(rest);
        let length = end.unwrap_or(rest.len());
        if self.carried.len() + length > self.limit {
            self.at += length;
            self.abandon();
            return Err(ScanError::TooLarge { limit: self.limit });
        }
        let start = self.at;
        self.at += length;
        if end.is_some() {
            self.open = None;
            if begins_here {
                return Ok(Some(Location::Piece(start..self.at)));
            }
        }
        self.carried.extend_from_slice(&self.piece[start..start + length]);
        Ok(end.map(|_| Location::Carried))
    }

    /// Discards the open value.
    pub(super) fn abandon(&mut self) {
        self.open = None;
        self.carried = Vec::new();
    }

    /// Discards the first `length` bytes of the open value. The remaining bytes begin a new value.
    pub(super) fn restart(&mut self, length: usize) {
        self.carried.drain(..length);
        self.open = match self.carried.first().map(|&first| OpenValue::new(first)) {
            Some(Ok(mut open)) => {
                open.feed(&self.carried);
                Some(open)
            }
            _ => None,
        };
    }

    /// Returns the part of the open value that was in earlier pieces.
    pub(super) fn carried(&self) -> &[u8] {
        &self.carried
    }

    pub(super) fn bytes(&self, location: &Location) -> &[u8] {
        match location {
            Location::Piece(range) => &self.piece[range.clone()],
            Location::Carried => &self.carried,
        }
    }
}
