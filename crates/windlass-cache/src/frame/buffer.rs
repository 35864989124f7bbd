//! The bytes of a body, piece by piece.

use std::ops::Range;

use bytes::Bytes;

use super::value::OpenValue;
use crate::scan::ScanError;

/// The piece at hand, and a value that began in earlier ones.
#[derive(Debug)]
pub(super) struct Buffer {
    piece: Bytes,
    at: usize,
    /// The value that goes on: what has been seen of it.
    carried: Vec<u8>,
    open: Option<OpenValue>,
    limit: usize,
}

/// Where a whole value lies.
#[derive(Clone, Debug)]
pub(super) enum Location {
    Piece(Range<usize>),
    Carried,
}

impl Buffer {
    /// Values longer than `limit` bytes are refused.
    pub(super) fn new(limit: usize) -> Self {
        Self { piece: Bytes::new(), at: 0, carried: Vec::new(), open: None, limit }
    }

    /// The next piece, when the one before it is used up.
    pub(super) fn push(&mut self, piece: Bytes) {
        debug_assert_eq!(self.at, self.piece.len(), "a piece came before the last one was read");
        self.piece = piece;
        self.at = 0;
    }

    /// Lets go of a piece that is used up, so that its memory can take the next one.
    pub(super) fn release(&mut self) {
        if self.at == self.piece.len() {
            self.piece = Bytes::new();
            self.at = 0;
        }
    }

    /// What is left of the piece.
    pub(super) fn rest(&self) -> &[u8] {
        &self.piece[self.at..]
    }

    /// Where the rest begins.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn advance(&mut self, length: usize) {
        self.at += length;
    }

    /// Whether a value has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn is_in_string(&self) -> bool {
        self.open.is_some_and(|open| open.is_in_string())
    }

    /// The next byte that is not white space, when the piece has one.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let rest = &self.piece[self.at..];
        let white = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += white;
        self.piece.get(self.at).copied()
    }

    /// Goes on to the end of the value that begins here or began earlier; `None` when the piece ends first.
    pub(super) fn value(&mut self) -> Result<Option<Location>, ScanError> {
        self.value_within(usize::MAX)
    }

    /// The same, looking at the next `length` bytes at most.
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

    /// Forgets the value that has begun.
    pub(super) fn abandon(&mut self) {
        self.open = None;
        self.carried = Vec::new();
    }

    /// Forgets the first `length` bytes of the value that has begun: what follows them is the beginning of another.
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

    /// What has been seen of the value that has begun.
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
