//! One object of the cluster: its JSON, and an index over it.

mod assembler;
mod dictionary;
mod error;
mod layout;
mod owner;

pub(crate) use self::assembler::Assembler;
pub use self::{dictionary::Dictionary, error::DecodeError, owner::OwnerReference};

use std::{borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use triomphe::ThinArc;

use self::layout::{Header, Span};
use crate::{
    ObjectKey,
    scan::{ScanError, ScanOptions, Scanner},
};

/// One object: its JSON without what the cache leaves out, and an index of its metadata.
///
/// It is immutable and one allocation; a clone is a count. It is decoded only when asked.
///
/// ```
/// use windlass_cache::RawObject;
///
/// let object = RawObject::from_json(br#"{"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "1"}}}"#)?;
/// assert_eq!(object.name(), "a");
/// assert_eq!(object.label("x"), Some("1"));
/// # Ok::<(), windlass_cache::scan::ScanError>(())
/// ```
#[derive(Clone)]
pub struct RawObject(ThinArc<Header, u8>);

impl RawObject {
    /// Indexes one object, leaving out `managedFields`. For many, or with other options, keep a [`Scanner`].
    pub fn from_json(json: &[u8]) -> Result<Self, ScanError> {
        Scanner::new(&ScanOptions::default()).object(json)
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.text(self.header().name)
    }

    /// `metadata.namespace`, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.optional(self.header().namespace)
    }

    /// `metadata.uid`; empty when the object has none.
    pub fn uid(&self) -> &str {
        self.text(self.header().uid)
    }

    /// `metadata.resourceVersion`; empty when the object has none.
    pub fn resource_version(&self) -> &str {
        self.text(self.header().resource_version)
    }

    /// The resourceVersion as the integer that it is; zero when it is none.
    pub fn revision(&self) -> u64 {
        self.header().revision
    }

    /// `metadata.generation`; zero when the object has none.
    pub fn generation(&self) -> i64 {
        self.header().generation
    }

    /// `metadata.creationTimestamp`, as it is written (RFC 3339, which orders as text).
    pub fn creation_timestamp(&self) -> Option<&str> {
        self.optional(self.header().creation)
    }

    /// `metadata.deletionTimestamp`: set when the object is being deleted.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.optional(self.header().deletion)
    }

    /// The labels, in the order in which they are written.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.header().labels(self.slice()).map(|(key, value)| (self.text(key), self.text(value)))
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let bytes = self.slice();
        let mut labels = self.header().labels(bytes);
        labels.find(|(name, _)| name.of(bytes) == key.as_bytes()).map(|(_, value)| self.text(value))
    }

    /// The annotations, in the order in which they are written. They are not indexed: each call reads them.
    pub fn annotations(&self) -> Vec<(String, String)> {
        let Some(span) = self.header().annotations() else { return Vec::new() };
        let json = self.json();
        let annotations = json.get(span.range()).unwrap_or_default();
        crate::scan::string_map(annotations)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<String> {
        self.annotations().into_iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The owner references.
    pub fn owner_references(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        self.header().owners(self.slice()).map(|record| OwnerReference::read(self, &record))
    }

    /// The owner reference whose `controller` is true.
    pub fn controller_owner(&self) -> Option<OwnerReference<'_>> {
        self.owner_references().find(|owner| owner.controller)
    }

    /// The finalizers.
    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.header().finalizers(self.slice()).map(|span| self.text(span))
    }

    /// The object's JSON, without what the cache leaves out. Borrowed unless it is kept compressed.
    pub fn json(&self) -> Cow<'_, [u8]> {
        let stored = self.header().json.of(self.slice());
        match &self.header().dictionary {
            None => Cow::Borrowed(stored),
            Some(dictionary) => Cow::Owned(dictionary.decompress(stored, self.header().json_length as usize)),
        }
    }

    /// The same as shared bytes, without a copy unless it is kept compressed.
    pub fn json_bytes(&self) -> Bytes {
        match self.json() {
            Cow::Borrowed(_) => Bytes::from_owner(Json(self.clone())),
            Cow::Owned(json) => json.into(),
        }
    }

    /// Length of the JSON in bytes, not compressed.
    pub fn json_length(&self) -> usize {
        self.header().json_length as usize
    }

    /// Decodes the object.
    ///
    /// # Errors
    /// The object is not a `K`. The message names the object and the field, and repeats no value.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<Arc<K>, DecodeError> {
        let json = self.json();
        serde_json::from_slice(&json).map(Arc::new).map_err(|error| DecodeError::new::<K>(self, &error))
    }

    /// Whether both are the same object in memory, not merely equal ones.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.slice(), other.slice())
    }

    /// Bytes of memory that the object takes.
    pub fn memory(&self) -> usize {
        size_of::<Header>() + 2 * size_of::<usize>() + self.slice().len()
    }

    /// Whether the JSON is kept compressed.
    pub fn is_compressed(&self) -> bool {
        self.header().dictionary.is_some()
    }

    /// Whether this is the object's name; the namespace is empty for what is in none.
    pub(crate) fn is_named(&self, namespace: &[u8], name: &[u8]) -> bool {
        self.name_bytes() == name && self.namespace_bytes() == namespace
    }

    pub(crate) fn name_bytes(&self) -> &[u8] {
        self.header().name.of(self.slice())
    }

    pub(crate) fn namespace_bytes(&self) -> &[u8] {
        self.header().namespace.of(self.slice())
    }

    pub(crate) fn uid_bytes(&self) -> &[u8] {
        self.header().uid.of(self.slice())
    }

    pub(crate) fn resource_version_bytes(&self) -> &[u8] {
        self.header().resource_version.of(self.slice())
    }

    pub(crate) fn label_bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let bytes = self.slice();
        self.header().labels(bytes).map(|(key, value)| (key.of(bytes), value.of(bytes)))
    }

    pub(crate) fn owner_uids(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.slice();
        self.header().owners(bytes).map(|owner| owner.uid.of(bytes))
    }

    /// A number that no other object in memory has.
    pub(crate) fn place(&self) -> usize {
        self.slice().as_ptr().addr()
    }

    fn header(&self) -> &Header {
        &self.0.header.header
    }

    fn slice(&self) -> &[u8] {
        &self.0.slice
    }

    fn text(&self, span: Span) -> &str {
        // The scan has found it to be UTF-8.
        std::str::from_utf8(span.of(self.slice())).unwrap_or_default()
    }

    fn optional(&self, span: Span) -> Option<&str> {
        Some(self.text(span)).filter(|text| !text.is_empty())
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the body: it may hold secrets.
        write!(f, "{}@{}", self.key(), self.resource_version())
    }
}

/// The JSON of an object that is not compressed.
struct Json(RawObject);

impl AsRef<[u8]> for Json {
    fn as_ref(&self) -> &[u8] {
        self.0.header().json.of(self.0.slice())
    }
}
