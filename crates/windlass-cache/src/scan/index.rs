//! The result of scanning an object.

use super::{ScanError, cursor::Token, text::unescape};

/// The range of a text in the scanned bytes or in the unescaped texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) unescaped: bool,
}

/// The metadata fields that are indexed for every object. The discriminant is an index into tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    Creation,
    Deletion,
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

/// The result of scanning an object. The memory is reused for the next object.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The start of the object in the scanned bytes.
    pub(crate) start: u32,
    /// The end of the object in the scanned bytes.
    pub(crate) end: u32,
    pub(crate) has_type: bool,
    /// The number of members `metadata`, and of members `annotations` of the metadata.
    pub(super) metadata: usize,
    pub(super) annotations: usize,
    /// By [`Field`].
    pub(crate) texts: [Option<Text>; 6],
    pub(crate) generation: i64,
    pub(crate) labels: Vec<(Text, Text)>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) finalizers: Vec<Text>,
    /// Byte ranges to drop: ascending and disjoint.
    pub(crate) cuts: Vec<(u32, u32)>,
    /// Texts with replaced escapes.
    pub(crate) unescaped: Vec<u8>,
}

impl Index {
    pub(super) fn clear(&mut self) {
        self.clear_metadata();
        self.has_type = false;
        (self.metadata, self.annotations) = (0, 0);
        self.cuts.clear();
        self.unescaped.clear();
    }

    /// Clears the metadata. The last of duplicate `metadata` keys wins.
    pub(super) fn clear_metadata(&mut self) {
        self.texts = [None; 6];
        self.generation = 0;
        self.labels.clear();
        self.owners.clear();
        self.finalizers.clear();
    }

    /// Records a string. For a string with escapes, the unescaped text is stored.
    ///
    /// # Errors
    /// The string is longer than an index can say.
    #[inline(always)]
    pub(super) fn keep(&mut self, bytes: &[u8], token: Token) -> Result<Text, ScanError> {
        if token.end - token.start > usize::from(u16::MAX) {
            return Err(ScanError::field("a text of metadata", "shorter than 65,536 bytes"));
        }
        if token.escaped { self.keep_unescaped(bytes, token) } else { Ok(Text::at(token.start, token.end)) }
    }

    #[cold]
    fn keep_unescaped(&mut self, bytes: &[u8], token: Token) -> Result<Text, ScanError> {
        let text = unescape(&bytes[token.start..token.end], token.start)?;
        let start = self.unescaped.len();
        self.unescaped.extend_from_slice(&text);
        Ok(Text { unescaped: true, ..Text::at(start, self.unescaped.len()) })
    }

    /// Returns whether the object has more than one member `metadata` or `annotations`.
    pub(crate) fn repeats_annotations(&self) -> bool {
        self.metadata > 1 || self.annotations > 1
    }

    pub(crate) fn field(&self, field: Field) -> Option<Text> {
        self.texts[field as usize]
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
