//! An object of the cluster: the JSON, and an index over the metadata.

mod assembler;
mod base;
mod bases;
mod compressed;
mod content;
mod dictionary;
mod difference;
mod error;
mod layout;
mod own_text;
mod owner;
mod path;
mod problem;

use self::base::Base;
pub(crate) use self::{
    assembler::{Assembler, NewObject, Sharing},
    compressed::Compressor,
};
pub use self::{
    dictionary::Dictionary, error::DecodeError, owner::OwnerReference, problem::describe_decode_error,
};

use std::{any::type_name, borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use triomphe::ThinArc;

use self::layout::Layout;
use crate::{
    ObjectKey,
    scan::{Annotations, Field},
};

/// An object as JSON, without dropped fields, and an index over the metadata.
///
/// Objects are immutable. An object is an allocation, plus a base or dictionary that objects of the kind
/// share; a clone increments a reference count. Objects are decoded only on request.
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
pub struct RawObject(ThinArc<Option<Arc<Base>>, u8>);

impl RawObject {
    /// Returns the key: namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        self.text(Field::Name)
    }

    /// Returns `metadata.namespace`, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.text(Field::Namespace)).filter(|text| !text.is_empty())
    }

    /// Returns `metadata.uid`; empty if the object has none.
    pub fn uid(&self) -> &str {
        self.text(Field::Uid)
    }

    /// Returns `metadata.resourceVersion`; empty if the object has none.
    pub fn resource_version(&self) -> &str {
        self.text(Field::ResourceVersion)
    }

    /// Returns the resource version as an integer; zero for any other text.
    pub fn revision(&self) -> u64 {
        self.resource_version().parse().unwrap_or_default()
    }

    /// Returns `metadata.generation`; zero if the object has none.
    pub fn generation(&self) -> i64 {
        self.layout().generation()
    }

    /// Returns `metadata.creationTimestamp` as text. RFC 3339 timestamps of the API server are ordered as text.
    pub fn creation_timestamp(&self) -> Option<&str> {
        Some(self.text(Field::Creation)).filter(|text| !text.is_empty())
    }

    /// Returns `metadata.deletionTimestamp`, which is set while the object is terminating.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        Some(self.text(Field::Deletion)).filter(|text| !text.is_empty())
    }

    /// Returns the labels in the order of the JSON.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.label_bytes().map(|(key, value)| (text(key), text(value)))
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.label_bytes().find(|(name, _)| *name == key.as_bytes()).map(|(_, value)| text(value))
    }

    /// Returns the annotations in the order of the JSON. Annotations are not indexed: each call reads the
    /// JSON up to the annotations.
    pub fn annotations(&self) -> Vec<(String, String)> {
        let json = self.json();
        self.annotations_in(&json).all()
    }

    /// Returns the value of an annotation. [`annotations`](Self::annotations) reads several annotations at once.
    pub fn annotation(&self, key: &str) -> Option<String> {
        let json = self.json();
        self.annotations_in(&json).value(key)
    }

    fn annotations_in<'a>(&self, json: &'a [u8]) -> Annotations<'a> {
        Annotations { json, are_repeated: self.layout().repeats_annotations() }
    }

    /// Returns the owner references.
    pub fn owner_references(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        let layout = self.layout();
        (0..layout.owners()).map(move |number| OwnerReference::read(layout, number))
    }

    /// Returns the owner reference whose `controller` is true.
    pub fn controller_owner(&self) -> Option<OwnerReference<'_>> {
        self.owner_references().find(|owner| owner.controller)
    }

    /// Returns the finalizers.
    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        let layout = self.layout();
        (0..layout.finalizers()).map(move |number| text(layout.finalizer(number)))
    }

    /// Returns the JSON, without dropped fields. The result is borrowed unless the object is compressed or
    /// has a base.
    pub fn json(&self) -> Cow<'_, [u8]> {
        let (layout, length) = (self.layout(), self.json_length());
        match self.base() {
            None => Cow::Borrowed(layout.body()),
            Some(base) if layout.is_compressed() => {
                Cow::Owned(compressed::expand(layout.body(), base, length))
            }
            Some(base) => Cow::Owned(difference::expand(layout.body(), layout.operations(), base, length)),
        }
    }

    /// Returns the JSON as shared bytes, without a copy unless the object is compressed or has a base.
    pub fn json_bytes(&self) -> Bytes {
        match self.json() {
            Cow::Borrowed(_) => Bytes::from_owner(Json(self.clone())),
            Cow::Owned(json) => json.into(),
        }
    }

    /// Returns the length of the uncompressed JSON in bytes.
    pub fn json_length(&self) -> usize {
        self.layout().json_length()
    }

    /// Decodes the object.
    ///
    /// # Errors
    /// The object is not a `K`. The error names the object and the field, and repeats no value.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<Arc<K>, DecodeError> {
        self.decode_json(&self.json())
    }

    /// Works like [`decode`](Self::decode), with the [JSON](Self::json) of the object.
    pub(crate) fn decode_json<K: DeserializeOwned>(&self, json: &[u8]) -> Result<Arc<K>, DecodeError> {
        serde_json::from_slice(json)
            .map(Arc::new)
            .map_err(|error| DecodeError::new(self, json, type_name::<K>(), &error))
    }

    /// Returns whether both are the same allocation. Reads neither object.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.0.as_ptr(), other.0.as_ptr())
    }

    /// Returns whether both objects have the same JSON, in any order of the top-level members. The order differs because the API
    /// server writes `kind` before `apiVersion` in a watch event, and the scanner adds both to an item of a list.
    pub fn has_same_content(&self, other: &Self) -> bool {
        let bases = [self, other].map(|object| object.base().map(Arc::as_ptr));
        if bases[0] == bases[1] && self.slice() == other.slice() {
            return true;
        }
        // The same members in another order have the same length.
        if self.json_length() != other.json_length() {
            return false;
        }
        let (json, other) = (self.json(), other.json());
        json == other || content::have_same_members(&json, &other)
    }

    /// Returns the bytes of memory that the object takes, without a shared base or dictionary.
    pub fn memory(&self) -> usize {
        3 * size_of::<usize>() + self.slice().len()
    }

    /// Returns whether the JSON is stored compressed.
    pub fn is_compressed(&self) -> bool {
        self.layout().is_compressed()
    }

    /// Returns whether the object shares a base with other objects. Only the differences from the base are
    /// stored.
    pub fn has_base(&self) -> bool {
        self.base().is_some_and(|base| !base.text().is_empty())
    }

    fn base(&self) -> Option<&Arc<Base>> {
        self.0.header.header.as_ref()
    }

    /// Returns whether the object has this key. The namespace is empty for a cluster-scoped object.
    pub(crate) fn is_named(&self, namespace: &[u8], name: &[u8]) -> bool {
        self.name_bytes() == name && self.namespace_bytes() == namespace
    }

    pub(crate) fn name_bytes(&self) -> &[u8] {
        self.field(Field::Name)
    }

    pub(crate) fn namespace_bytes(&self) -> &[u8] {
        self.field(Field::Namespace)
    }

    pub(crate) fn uid_bytes(&self) -> &[u8] {
        self.field(Field::Uid)
    }

    pub(crate) fn resource_version_bytes(&self) -> &[u8] {
        self.field(Field::ResourceVersion)
    }

    pub(crate) fn label_bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let layout = self.layout();
        (0..layout.labels()).map(move |number| layout.label(number))
    }

    pub(crate) fn owner_uids(&self) -> impl Iterator<Item = &[u8]> {
        let layout = self.layout();
        (0..layout.owners()).map(move |number| layout.text(layout.owner(number).uid))
    }

    fn slice(&self) -> &[u8] {
        &self.0.slice
    }

    fn layout(&self) -> Layout<'_> {
        Layout::new(self.slice(), self.base().map_or(&[], |base| base.text()))
    }

    #[inline]
    fn field(&self, field: Field) -> &[u8] {
        self.layout().field(field)
    }

    fn text(&self, field: Field) -> &str {
        text(self.field(field))
    }
}

/// Returns bytes as text. The scan has checked the UTF-8.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never print the body, which may contain secrets.
        write!(f, "{}@{}", self.key(), self.resource_version())
    }
}

/// The JSON of an object that is stored uncompressed.
struct Json(RawObject);

impl AsRef<[u8]> for Json {
    fn as_ref(&self) -> &[u8] {
        self.0.layout().body()
    }
}
