//! The encoding of the blob: variable-length numbers (seven bits a byte, the lowest first), and a table of strings.

use std::collections::BTreeMap;

/// Collects the body and the strings of the body.
#[derive(Default)]
pub(super) struct Packer {
    body: Vec<u8>,
    strings: BTreeMap<String, u32>,
}

impl Packer {
    /// Returns the index of a string, and adds a new string to the table.
    pub(super) fn string(&mut self, text: &str) -> u32 {
        let next = self.strings.len() as u32;
        *self.strings.entry(text.to_owned()).or_insert(next)
    }

    pub(super) fn text(&mut self, text: &str) {
        let number = self.string(text);
        self.number(number);
    }

    pub(super) fn number(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.body.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.body.push(value as u8);
    }

    /// Writes the output of `write`, prefixed with the length.
    pub(super) fn sized<R>(&mut self, write: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::take(&mut self.body);
        let result = write(self);
        let inner = std::mem::replace(&mut self.body, outer);
        self.number(inner.len() as u32);
        self.body.extend(inner);
        result
    }

    /// Returns the number of strings, the lengths, the bytes, and the body.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut strings: Vec<(&String, &u32)> = self.strings.iter().collect();
        strings.sort_by_key(|(_, number)| **number);
        let mut out = Self::default();
        out.number(strings.len() as u32);
        for (text, _) in &strings {
            out.number(text.len() as u32);
        }
        for (text, _) in &strings {
            out.body.extend(text.as_bytes());
        }
        out.body.extend(&self.body);
        out.body
    }
}
