//! The outline of one object: where its values stand.

use crate::scan::{ScanError, cursor::Cursor};

/// What comes behind a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// The content of a string.
    Text,
    /// A number or a boolean.
    Scalar,
    /// A value that is not kept.
    Dropped,
    /// The end of the object.
    End,
}

impl Gap {
    /// Whether what stands there is kept.
    pub(super) fn is_hole(self) -> bool {
        matches!(self, Self::Text | Self::Scalar)
    }
}

/// A value in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) gap: Gap,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// An object with more values has no outline: its kind is data, not structure.
const MAX_VALUES: usize = 2048;
/// Objects that nest deeper have no outline.
const MAX_DEPTH: usize = 48;

/// The values of the object in `bytes[start..end]`, in order, and its end. `None` when there are too many, or when it is
/// not strictly JSON: then it is kept as it is, and a decode says what is wrong.
pub(super) fn outline(bytes: &[u8], start: usize, end: usize, cuts: &[(u32, u32)]) -> Option<Vec<Value>> {
    let mut cursor = Cursor::new(bytes.get(..end)?);
    cursor.at = start;
    let mut outline = Outline { cursor, cuts, values: Vec::new() };
    outline.value(0).ok()?;
    let is_compact = outline.cursor.at == end && !outline.cursor.has_controls;
    outline.values.push(Value { gap: Gap::End, start: end, end });
    (is_compact && outline.values.len() <= MAX_VALUES).then_some(outline.values)
}

struct Outline<'a> {
    cursor: Cursor<'a>,
    cuts: &'a [(u32, u32)],
    values: Vec<Value>,
}

impl Outline<'_> {
    fn value(&mut self, depth: usize) -> Result<(), ScanError> {
        let first = self.cursor.peek()?;
        let start = self.cursor.at;
        if depth > MAX_DEPTH || self.values.len() > MAX_VALUES {
            return Err(ScanError::TooLarge { limit: MAX_VALUES });
        }
        if self.cuts.iter().any(|&(from, to)| (from as usize..to as usize).contains(&start)) {
            self.cursor.skip_value()?;
            self.values.push(Value { gap: Gap::Dropped, start, end: self.cursor.at });
            return Ok(());
        }
        match first {
            b'{' => self.members(depth),
            b'[' => self.elements(depth),
            b'"' => {
                let token = self.cursor.string("a string")?;
                self.values.push(Value { gap: Gap::Text, start: token.start, end: token.end });
                Ok(())
            }
            // It seldom stands where something else could: it is part of the text.
            b'n' => self.cursor.literal(b"null"),
            _ => {
                self.cursor.skip_value()?;
                self.values.push(Value { gap: Gap::Scalar, start, end: self.cursor.at });
                Ok(())
            }
        }
    }

    fn members(&mut self, depth: usize) -> Result<(), ScanError> {
        self.cursor.expect(b'{', "`{`")?;
        if self.cursor.eat(b'}')? {
            return Ok(());
        }
        loop {
            self.cursor.key()?;
            self.value(depth + 1)?;
            if self.cursor.eat(b'}')? {
                return Ok(());
            }
            self.cursor.expect(b',', "`,` or `}`")?;
        }
    }

    fn elements(&mut self, depth: usize) -> Result<(), ScanError> {
        self.cursor.expect(b'[', "`[`")?;
        if self.cursor.eat(b']')? {
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            if self.cursor.eat(b']')? {
                return Ok(());
            }
            self.cursor.expect(b',', "`,` or `]`")?;
        }
    }
}
