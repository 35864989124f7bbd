//! Finds the end of a JSON value that arrives in pieces.

use crate::scan::{ScanError, Skip};

/// A value whose end has not arrived.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenValue {
    Container(Skip),
    Text { escaped: bool },
    Scalar,
}

impl OpenValue {
    /// Begins a value with the first byte.
    pub(super) fn new(first: u8) -> Result<Self, ScanError> {
        match first {
            b'{' | b'[' => Ok(Self::Container(Skip::default())),
            b'"' => Ok(Self::Text { escaped: true }),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Ok(Self::Scalar),
            _ => Err(ScanError::syntax(0, "a value")),
        }
    }

    /// Continues with `bytes`. If the value ends in `bytes`, returns the offset after the last byte of the
    /// value.
    ///
    /// The opening quote of a string counts as escaped, and therefore does not close the string.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Container(skip) => skip.feed(bytes),
            Self::Text { escaped } => bytes
                .iter()
                .position(|&byte| {
                    if std::mem::take(escaped) {
                        return false;
                    }
                    *escaped = byte == b'\\';
                    byte == b'"'
                })
                .map(|quote| quote + 1),
            Self::Scalar => bytes
                .iter()
                .position(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t')),
        }
    }

    /// Returns whether the bytes so far end inside a string.
    pub(super) fn is_in_string(&self) -> bool {
        match self {
            Self::Container(skip) => skip.is_in_string(),
            Self::Text { .. } => true,
            Self::Scalar => false,
        }
    }
}
