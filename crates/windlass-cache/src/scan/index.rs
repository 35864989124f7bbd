//! What the scan finds in one object.

use std::sync::Arc;

use super::{
    ScanError,
    cursor::Token,
    shape::{Own, Shape},
    text::unescape,
};

/// Where a text lies: in the scanned bytes, or among the unescaped texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) unescaped: bool,
}

/// The texts that every object has. A number is the place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    Creation,
    Deletion,
}

pub(crate) const FIELDS: [Field; 6] =
    [Field::Name, Field::Namespace, Field::Uid, Field::ResourceVersion, Field::Creation, Field::Deletion];

/// An owner reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) api_version: Text,
    pub(crate) kind: Text,
    pub(crate) name: Text,
    pub(crate) uid: Text,
    pub(crate) controller: bool,
    pub(crate) controller_at: Option<Text>,
    pub(crate) block_owner_deletion: bool,
    pub(crate) block_owner_deletion_at: Option<Text>,
}

/// What the scan finds in one object. Reused from object to object.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Where the object begins and ends in the scanned bytes.
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) has_type: bool,
    /// By [`Field`].
    pub(crate) texts: [Option<Text>; 6],
    pub(crate) generation: i64,
    pub(crate) generation_at: Option<Text>,
    pub(crate) annotations: Option<Text>,
    pub(crate) labels: Vec<(Text, Text)>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) finalizers: Vec<Text>,
    /// Byte ranges to leave out: ascending, disjoint.
    pub(crate) cuts: Vec<(u32, u32)>,
    /// Texts that held escapes, without them.
    pub(crate) unescaped: Vec<u8>,
    /// The object's shape, if it has a known one. Then labels, owners, finalizers and annotations are not listed here: they
    /// are in the holes that the shape says.
    pub(crate) shape: Option<Arc<Shape>>,
    /// What stands in the holes of the shape that is not usual, by hole.
    pub(crate) own: Vec<Own>,
}

impl Index {
    pub(super) fn clear(&mut self) {
        self.clear_metadata();
        self.has_type = false;
        self.shape = None;
        self.cuts.clear();
        self.unescaped.clear();
    }

    /// Forgets what an earlier `metadata` said: of duplicate keys the last wins.
    pub(super) fn clear_metadata(&mut self) {
        self.texts = [None; 6];
        self.annotations = None;
        self.generation = 0;
        self.generation_at = None;
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
