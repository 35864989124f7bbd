//! Scans the JSON of Kubernetes objects without decoding it.
//!
//! The scan indexes an object's metadata and skips the rest, 64 bytes at a time, with AVX2 or NEON if the
//! processor has them and with portable code otherwise. Dropped fields (`managedFields` by default, and the
//! fields of a [`Transform`]) are recorded as cuts and never copied.
//!
//! Objects of one kind ([`ScanOptions::one_kind`]) are stored as differences from earlier objects.
//!
//! Indexed values equal those of `serde_json`: any white space, any escape, the last of duplicate keys. Skipped values are
//! checked for balanced brackets and for UTF-8; the rest of their syntax is checked when the object is decoded.

mod annotations;
mod cursor;
mod error;
mod event;
mod index;
mod kernel;
mod object;
mod path;
mod scalar;
mod skip;
mod text;
mod transform;

#[doc(hidden)]
pub mod differential;

#[cfg(test)]
mod tests;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod neon;

pub(crate) use self::{
    annotations::Annotations,
    index::{Field, Index, Text},
    skip::Skip,
};
pub use self::{
    error::ScanError,
    event::WatchEventType,
    transform::{FieldPath, FieldPathError, Transform, TransformError},
};

use self::{cursor::Cursor, object::ObjectScan};

/// The options of a scan: which parts of an object are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// Fields to drop, besides `metadata.managedFields`.
    pub transform: Option<Transform>,
    /// Keeps `metadata.managedFields`, which are about half of most objects. Default: false.
    pub keep_managed_fields: bool,
    /// Keeps only `metadata`, with the `apiVersion` and `kind` of [`type_meta`](Self::type_meta): a server writes `PartialObjectMetadata`
    /// instead of the kind. Default: false.
    pub metadata_only: bool,
    /// `apiVersion` and `kind` for objects without these fields, such as the items of a typed list, and for metadata.
    pub type_meta: Option<(String, String)>,
    /// True if all objects are of the same kind: the text that the objects have in common is stored once.
    /// Default: false.
    pub one_kind: bool,
    /// The maximum size of an object in bytes, at most 1 GiB. Larger objects are rejected. Default: 64 MiB.
    pub max_object_size: usize,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            transform: None,
            keep_managed_fields: false,
            metadata_only: false,
            type_meta: None,
            one_kind: false,
            max_object_size: 64 << 20,
        }
    }
}

/// Indexes objects in sequence, and reuses the working memory.
#[derive(Debug)]
pub(crate) struct Indexer {
    transform: Transform,
    metadata_only: bool,
    max_object_size: usize,
    index: Index,
    has_controls: bool,
}

impl Indexer {
    pub(crate) fn new(options: &ScanOptions) -> Self {
        let given = options.transform.as_ref().map_or(&[][..], Transform::paths).iter().cloned();
        let managed = (!options.keep_managed_fields).then(FieldPath::managed_fields);
        // Cannot fail: the paths have been compiled before, and managedFields may be dropped.
        let transform = Transform::drop_fields(given.chain(managed)).unwrap_or_else(|_| Transform::nothing());
        Self {
            transform,
            metadata_only: options.metadata_only,
            max_object_size: options.max_object_size.min(1 << 30),
            index: Index::default(),
            has_controls: false,
        }
    }

    /// Indexes the object at the start of `bytes` and returns the length of the object.
    pub(crate) fn index(&mut self, bytes: &[u8]) -> Result<usize, ScanError> {
        self.index_with(bytes, |scan| scan.object().map(drop)).map(|((), length)| length)
    }

    /// Indexes the watch event at the start of `bytes`; returns the type and the length of the event.
    pub(crate) fn index_event(&mut self, bytes: &[u8]) -> Result<(WatchEventType, usize), ScanError> {
        self.index_with(bytes, |scan| {
            let event = scan.event()?;
            Ok(event)
        })
    }

    /// Returns the index of the last object.
    pub(crate) fn last(&self) -> &Index {
        &self.index
    }

    /// Returns whether the last indexed bytes contain line breaks or tabs.
    pub(crate) fn has_controls(&self) -> bool {
        self.has_controls
    }

    fn index_with<R>(
        &mut self,
        bytes: &[u8],
        scan: impl FnOnce(&mut ObjectScan<'_, '_>) -> Result<R, ScanError>,
    ) -> Result<(R, usize), ScanError> {
        self.index.clear();
        let mut object = ObjectScan {
            cursor: Cursor::new(bytes),
            index: &mut self.index,
            transform: &self.transform,
            metadata_only: self.metadata_only,
        };
        let limit = self.max_object_size;
        let found = match scan(&mut object) {
            Err(ScanError::Incomplete) if bytes.len() > limit => return Err(ScanError::TooLarge { limit }),
            found => found?,
        };
        let (length, non_ascii) = (object.cursor.at, object.cursor.non_ascii);
        self.has_controls = object.cursor.has_controls;
        if length > limit {
            return Err(ScanError::TooLarge { limit });
        }
        if non_ascii && let Err(error) = std::str::from_utf8(&bytes[..length]) {
            return Err(ScanError::Utf8 { offset: error.valid_up_to() });
        }
        Ok((found, length))
    }
}
