//! The depth and size of values. Recursion ends at a limit, however deep the value is.

use serde_json::Value;

/// Returns the number of values in `value`, or `None` if the values nest deeper than `depth`.
///
/// A scalar has depth 0, and an empty object or array has depth 1.
pub(super) fn count(value: &Value, depth: usize) -> Option<usize> {
    let mut total = 1;
    match value {
        Value::Array(items) => {
            let depth = depth.checked_sub(1)?;
            for item in items {
                total += count(item, depth)?;
            }
        }
        Value::Object(members) => {
            let depth = depth.checked_sub(1)?;
            for member in members.values() {
                total += count(member, depth)?;
            }
        }
        _ => {}
    }
    Some(total)
}

/// The size and depth that a copy may still have.
pub(super) struct Allowance {
    /// JSON bytes that are left.
    pub(super) bytes: usize,
}

impl Allowance {
    /// Subtracts the size of a value. Returns `None` if the value exceeds the allowance, or nests deeper than
    /// `depth`.
    pub(super) fn take(&mut self, value: &Value, depth: usize) -> Option<()> {
        match value {
            Value::Null => self.bytes(4),
            Value::Bool(value) => self.bytes(if *value { 4 } else { 5 }),
            Value::Number(number) => self.bytes(number.to_string().len()),
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                let depth = depth.checked_sub(1)?;
                self.bytes(2 + items.len().saturating_sub(1))?;
                items.iter().try_for_each(|item| self.take(item, depth))
            }
            Value::Object(members) => {
                let depth = depth.checked_sub(1)?;
                self.bytes(2 + members.len().saturating_sub(1))?;
                members.iter().try_for_each(|(name, value)| {
                    self.text(name)?;
                    self.bytes(1)?;
                    self.take(value, depth)
                })
            }
        }
    }

    fn bytes(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }

    /// Subtracts a string in Go's JSON, with the characters of HTML escaped.
    fn text(&mut self, text: &str) -> Option<()> {
        self.bytes(text.len() + 2)?;
        let escaped = text.bytes().map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x8 | 0xc => 1,
            b'<' | b'>' | b'&' | 0..=0x1f => 5,
            _ => 0,
        });
        self.bytes(escaped.sum())
    }
}
