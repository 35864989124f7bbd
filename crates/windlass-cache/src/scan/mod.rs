//! Indexes the JSON of Kubernetes objects without decoding it.
//!
//! An object's metadata is read; everything else is skipped, 64 bytes at a time, by AVX2 or NEON where the
//! processor has them and by a portable twin where it has not. What the cache does not keep (`managedFields`
//! unless asked for, and the fields of a [`Transform`]) is noted as a cut and never copied.
//!
//! Objects of one kind ([`ScanOptions::one_kind`]) are first compared with the text that those before them have shared.
//!
//! What is read equals what `serde_json` reads: any white space, any escape, of duplicate keys the last. What is skipped
//! is checked for balanced brackets and for UTF-8; its finer syntax is checked when the object is decoded.

mod cursor;
mod error;
mod event;
mod index;
mod kernel;
mod object;
mod path;
mod scalar;
mod shape;
mod skip;
mod text;
mod transform;

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod differential;

#[cfg(test)]
mod tests;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod neon;

pub use self::{
    error::ScanError,
    event::WatchEventType,
    transform::{FieldPath, FieldPathError, Transform, TransformError},
};
pub(crate) use self::{
    index::{FIELDS, Field, Index, Text},
    shape::{HoleId, Own, OwnerHoles, Place, Shape, integer},
    skip::Skip,
};

use self::{cursor::Cursor, object::ObjectScan, shape::Shapes};
use crate::{ObjectKey, RawObject, object::Assembler};

/// What of an object is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// Fields to leave out. `metadata.managedFields` is left out unless `keep_managed_fields`.
    pub transform: Option<Transform>,
    /// Keeps `metadata.managedFields`, which are about half of most objects.
    pub keep_managed_fields: bool,
    /// Keeps `apiVersion`, `kind` and `metadata` only.
    pub metadata_only: bool,
    /// `apiVersion` and `kind` for objects that come without, as those in a typed list do.
    pub type_meta: Option<(String, String)>,
    /// The objects are of one kind: what they have in common is kept once.
    pub one_kind: bool,
    /// Objects larger than this are refused. In bytes; at most 1 GiB.
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

/// Indexes objects one after the other, reusing its working memory.
#[derive(Debug)]
pub struct Scanner {
    transform: Transform,
    metadata_only: bool,
    max_object_size: usize,
    index: Index,
    has_controls: bool,
    assembler: Assembler,
    shapes: Option<Shapes>,
}

impl Scanner {
    /// A scanner that keeps what `options` say.
    pub fn new(options: &ScanOptions) -> Self {
        let given = options.transform.as_ref().map_or(&[][..], Transform::paths).iter().cloned();
        let managed = (!options.keep_managed_fields).then(FieldPath::managed_fields);
        // The given paths compiled before; managedFields may always be left out.
        let transform = Transform::drop_fields(given.chain(managed)).unwrap_or_else(|_| Transform::nothing());
        Self {
            transform,
            metadata_only: options.metadata_only,
            max_object_size: options.max_object_size.min(1 << 30),
            index: Index::default(),
            has_controls: false,
            assembler: Assembler::new(options.type_meta.as_ref()),
            shapes: options.one_kind.then(Shapes::default),
        }
    }

    /// Returns the bytes of memory that the objects of the kind share.
    pub(crate) fn shapes_memory(&self) -> usize {
        self.shapes.as_ref().map_or(0, Shapes::memory)
    }

    /// Indexes the object at the start of `bytes`. What comes behind it is not looked at.
    ///
    /// # Errors
    /// [`ScanError::Incomplete`] when the object goes on behind `bytes`; the others are final.
    pub fn scan<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Scanned<'a>, ScanError> {
        let length = self.index(bytes)?;
        Ok(self.view(&bytes[..length]))
    }

    /// Indexes the object at the start of `bytes` and answers its length.
    pub(crate) fn index(&mut self, bytes: &[u8]) -> Result<usize, ScanError> {
        self.index_with(bytes, |scan| scan.object().map(drop)).map(|((), length)| length)
    }

    /// Whether there were line breaks or tabs in what was indexed last.
    pub(crate) fn has_controls(&self) -> bool {
        self.has_controls
    }

    /// Indexes the watch event at the start of `bytes`; answers its type and its length.
    pub(crate) fn index_event(&mut self, bytes: &[u8]) -> Result<(WatchEventType, usize), ScanError> {
        self.index_with(bytes, |scan| {
            let event = scan.event()?;
            Ok(event)
        })
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
            shapes: self.shapes.as_mut(),
            type_members: self.assembler.type_members(),
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

    /// What was indexed last, in these bytes.
    pub(crate) fn view<'a>(&'a mut self, source: &'a [u8]) -> Scanned<'a> {
        Scanned { source, index: &self.index, assembler: &mut self.assembler }
    }

    /// Indexes bytes that are one object and nothing else but white space, and copies it.
    pub fn object(&mut self, bytes: &[u8]) -> Result<RawObject, ScanError> {
        let scanned = self.scan(bytes)?;
        let length = scanned.length();
        match bytes[length..].iter().position(|byte| !byte.is_ascii_whitespace()) {
            Some(behind) => Err(ScanError::syntax(length + behind, "the end")),
            None => scanned.to_object(),
        }
    }
}

/// An object that has been indexed and not yet copied.
#[derive(Debug)]
pub struct Scanned<'a> {
    source: &'a [u8],
    index: &'a Index,
    assembler: &'a mut Assembler,
}

impl<'a> Scanned<'a> {
    /// How many bytes the object takes, white space before it included.
    pub fn length(&self) -> usize {
        self.index.end as usize
    }

    /// `metadata.name`.
    pub fn name(&self) -> Option<&'a str> {
        self.text(Field::Name)
    }

    /// `metadata.namespace`; an empty one counts as none.
    pub fn namespace(&self) -> Option<&'a str> {
        self.text(Field::Namespace).filter(|namespace| !namespace.is_empty())
    }

    /// `metadata.uid`, or the empty string.
    pub fn uid(&self) -> &'a str {
        self.text(Field::Uid).unwrap_or_default()
    }

    /// `metadata.resourceVersion`, or the empty string.
    pub fn resource_version(&self) -> &'a str {
        self.text(Field::ResourceVersion).unwrap_or_default()
    }

    /// `metadata.name`, when there is one.
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

    /// The object's key.
    pub fn key(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(self.namespace(), self.name()?))
    }

    /// The object's JSON as it came.
    pub fn source(&self) -> &'a [u8] {
        self.source.get(self.index.start as usize..self.index.end as usize).unwrap_or_default()
    }

    /// The value of an annotation, of an object that has no shape: bookmarks, having no name, never have one.
    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        let annotations = self.index.text(self.source, self.index.annotations?);
        string_map(annotations).into_iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Copies the object, without what is cut.
    ///
    /// # Errors
    /// The object has no name.
    pub fn to_object(self) -> Result<RawObject, ScanError> {
        if self.name_bytes().is_none() {
            return Err(ScanError::field("metadata.name", "set"));
        }
        Ok(self.assembler.assemble(self.source, self.index))
    }

    fn text(&self, field: Field) -> Option<&'a str> {
        std::str::from_utf8(self.index.text(self.source, self.index.field(field)?)).ok()
    }
}

/// Reads the members of an object whose values are strings; the others are left out.
pub(crate) fn string_map(json: &[u8]) -> Vec<(String, String)> {
    let mut map = Vec::new();
    // What is not an object of strings ends early: the scan has let it pass, a decode reports it.
    let _ = read_strings(&mut Cursor::new(json), &mut map);
    map
}

fn read_strings(cursor: &mut Cursor<'_>, map: &mut Vec<(String, String)>) -> Result<(), ScanError> {
    let text = |cursor: &Cursor<'_>, token: cursor::Token| {
        let content = text::unescape(&cursor.bytes[token.start..token.end], token.start)?;
        Ok::<_, ScanError>(String::from_utf8_lossy(&content).into_owned())
    };
    cursor.expect(b'{', "`{`")?;
    if cursor.eat(b'}')? {
        return Ok(());
    }
    loop {
        let key = cursor.key()?;
        let key = text(cursor, key)?;
        if cursor.peek()? == b'"' {
            let value = cursor.string("a string")?;
            let value = text(cursor, value)?;
            map.push((key, value));
        } else {
            cursor.skip_value()?;
        }
        if cursor.eat(b'}')? {
            return Ok(());
        }
        cursor.expect(b',', "`,` or `}`")?;
    }
}
