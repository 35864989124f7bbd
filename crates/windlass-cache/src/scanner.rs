//! Scans objects: an index over the metadata first, and a copy on request.

use crate::{
    ObjectKey, RawObject,
    object::{Assembler, NewObject},
    scan::{Annotations, Field, Index, Indexer, ScanError, ScanOptions, WatchEventType},
};

/// Scans objects in sequence, and reuses the working memory.
#[derive(Debug)]
pub struct Scanner {
    indexer: Indexer,
    assembler: Assembler,
}

impl Scanner {
    /// Creates a scanner.
    pub fn new(options: &ScanOptions) -> Self {
        Self { indexer: Indexer::new(options), assembler: Assembler::new(options) }
    }

    /// Returns the bytes of the text that all objects so far share.
    pub(crate) fn shared_memory(&self) -> usize {
        self.assembler.bases_memory()
    }

    /// Scans the object at the start of `bytes`. Further bytes are not read.
    ///
    /// # Errors
    /// [`ScanError::Incomplete`] if the object continues after `bytes`; other errors are final.
    pub fn scan<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Scanned<'a>, ScanError> {
        let length = self.index(bytes)?;
        Ok(self.view(&bytes[..length]))
    }

    /// Indexes the object at the start of `bytes` and returns the length of the object.
    pub(crate) fn index(&mut self, bytes: &[u8]) -> Result<usize, ScanError> {
        self.indexer.index(bytes)
    }

    /// Indexes the watch event at the start of `bytes`; returns the type and the length of the event.
    pub(crate) fn index_event(&mut self, bytes: &[u8]) -> Result<(WatchEventType, usize), ScanError> {
        self.indexer.index_event(bytes)
    }

    /// Returns whether the last indexed bytes contain line breaks or tabs.
    pub(crate) fn has_controls(&self) -> bool {
        self.indexer.has_controls()
    }

    /// Returns a view of the object that was indexed last. `source` are the bytes of that object.
    pub(crate) fn view<'a>(&'a mut self, source: &'a [u8]) -> Scanned<'a> {
        Scanned { source, index: self.indexer.last(), assembler: &mut self.assembler }
    }

    /// Scans bytes that contain one object and white space only, and copies the object.
    ///
    /// # Errors
    /// The bytes are not a single object with a name.
    pub fn object(&mut self, bytes: &[u8]) -> Result<RawObject, ScanError> {
        let scanned = self.scan(bytes)?;
        let length = scanned.length();
        match bytes[length..].iter().position(|byte| !byte.is_ascii_whitespace()) {
            Some(behind) => Err(ScanError::syntax(length + behind, "the end")),
            None => scanned.to_object(),
        }
    }
}

/// An object that has been scanned and not yet copied.
#[derive(Debug)]
pub struct Scanned<'a> {
    source: &'a [u8],
    index: &'a Index,
    assembler: &'a mut Assembler,
}

impl<'a> Scanned<'a> {
    /// Returns the length of the object in bytes, including leading white space.
    pub fn length(&self) -> usize {
        self.index.end as usize
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> Option<&'a str> {
        self.text(Field::Name)
    }

    /// Returns `metadata.namespace`. An empty namespace counts as no namespace.
    pub fn namespace(&self) -> Option<&'a str> {
        self.text(Field::Namespace).filter(|namespace| !namespace.is_empty())
    }

    /// Returns `metadata.uid`, or the empty string.
    pub fn uid(&self) -> &'a str {
        self.text(Field::Uid).unwrap_or_default()
    }

    /// Returns `metadata.resourceVersion`, or the empty string.
    pub fn resource_version(&self) -> &'a str {
        self.text(Field::ResourceVersion).unwrap_or_default()
    }

    /// Returns `metadata.name`.
    pub(crate) fn name_bytes(&self) -> Option<&'a [u8]> {
        Some(self.bytes(Field::Name)).filter(|name| !name.is_empty())
    }

    pub(crate) fn namespace_bytes(&self) -> &'a [u8] {
        self.bytes(Field::Namespace)
    }

    pub(crate) fn uid_bytes(&self) -> &'a [u8] {
        self.bytes(Field::Uid)
    }

    pub(crate) fn resource_version_bytes(&self) -> &'a [u8] {
        self.bytes(Field::ResourceVersion)
    }

    fn bytes(&self, field: Field) -> &'a [u8] {
        self.index.field(field).map_or(&[], |text| self.index.text(self.source, text))
    }

    /// Returns the key of the object.
    pub fn key(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(self.namespace(), self.name()?))
    }

    /// Returns the JSON of the object as received.
    pub fn source(&self) -> &'a [u8] {
        self.source.get(self.index.start as usize..self.index.end as usize).unwrap_or_default()
    }

    /// Returns the value of an annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        let are_repeated = self.index.repeats_annotations();
        Annotations { json: self.source(), are_repeated }.value(key)
    }

    /// Copies the object without the cuts.
    ///
    /// # Errors
    /// The object has no name.
    pub fn to_object(self) -> Result<RawObject, ScanError> {
        self.into_successor(None)
    }

    /// Works like [`Self::to_object`], for an object that replaces the probably similar object `old`.
    pub(crate) fn into_successor(self, old: Option<&RawObject>) -> Result<RawObject, ScanError> {
        if self.name_bytes().is_none() {
            return Err(ScanError::field("metadata.name", "set"));
        }
        Ok(self.assembler.assemble(self.source, self.index, old))
    }

    /// Copies the object without the cuts, to store the object later.
    ///
    /// # Errors
    /// The object has no name.
    pub(crate) fn read(self, object: &mut NewObject) -> Result<(), ScanError> {
        if self.name_bytes().is_none() {
            return Err(ScanError::field("metadata.name", "set"));
        }
        self.assembler.read(self.source, self.index, object);
        Ok(())
    }

    fn text(&self, field: Field) -> Option<&'a str> {
        std::str::from_utf8(self.index.text(self.source, self.index.field(field)?)).ok()
    }
}

impl RawObject {
    /// Scans an object and drops `managedFields`. Use a [`Scanner`] for many objects, or for other options.
    ///
    /// # Errors
    /// The bytes are not the JSON of an object with a name.
    pub fn from_json(json: &[u8]) -> Result<Self, ScanError> {
        Scanner::new(&ScanOptions::default()).object(json)
    }
}
