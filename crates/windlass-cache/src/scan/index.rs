//! What the scan finds in one object.

use super::{ScanError, cursor::Token, text::unescape};

/// Where a text lies: in the scanned bytes, or among the unescaped texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) unescaped: bool,
}

/// An owner reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) api_version: Text,
    pub(crate) kind: Text,
    pub(crate) name: Text,
    pub(crate) uid: Text,
    pub(crate) controller: bool,
    pub(crate) block_owner_deletion: bool,
}

/// What the scan finds in one object. Reused from object to object.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Where the object begins and ends in the scanned bytes.
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) has_type: bool,
    pub(crate) name: Option<Text>,
    pub(crate) namespace: Option<Text>,
    pub(crate) uid: Option<Text>,
    pub(crate) resource_version: Option<Text>,
    pub(crate) generation: i64,
    pub(crate) creation: Option<Text>,
    pub(crate) deletion: Option<Text>,
    pub(crate) annotations: Option<Text>,
    pub(crate) labels: Vec<(Text, Text)>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) finalizers: Vec<Text>,
    /// Byte ranges to leave out: ascending, disjoint.
    pub(crate) cuts: Vec<(u32, u32)>,
    /// Texts that held escapes, without them.
    pub(crate) unescaped: Vec<u8>,
}

impl Index {
    pub(super) fn clear(&mut self) {
        self.clear_metadata();
        self.has_type = false;
        self.cuts.clear();
        self.unescaped.clear();
    }

    /// Forgets what an earlier `metadata` said: of duplicate keys the last wins.
    pub(super) fn clear_metadata(&mut self) {
        (self.name, self.namespace, self.uid, self.resource_version) = (None, None, None, None);
        (self.creation, self.deletion, self.annotations) = (None, None, None);
        self.generation = 0;
        self.labels.clear();
        self.owners.clear();
        self.finalizers.clear();
    }

    /// Keeps a string's place, and its text without escapes when it has some.
    #[inline(always)]
    pub(super) fn keep(&mut self, bytes: &[u8], token: Token) -> Result<Text, ScanError> {
        if token.escaped { self.keep_unescaped(bytes, token) } else { Ok(Text::at(token.start, token.end)) }
    }

    #[cold]
    fn keep_unescaped(&mut self, bytes: &[u8], token: Token) -> Result<Text, ScanError> {
        let text = unescape(&bytes[token.start..token.end], token.start)?;
        let start = self.unescaped.len();
        self.unescaped.extend_from_slice(&text);
        Ok(Text { unescaped: true, ..Text::at(start, self.unescaped.len()) })
    }

    pub(crate) fn text<'a>(&'a self, source: &'a [u8], text: Text) -> &'a [u8] {
        let from = if text.unescaped { &self.unescaped[..] } else { source };
        &from[text.offset as usize..][..text.length as usize]
    }
}

impl Text {
    pub(super) fn at(start: usize, end: usize) -> Self {
        Self { offset: start as u32, length: (end - start) as u32, unescaped: false }
    }
}
