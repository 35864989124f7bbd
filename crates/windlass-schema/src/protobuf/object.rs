//! Objects and the events of watches in Kubernetes' protobuf.

use std::sync::Arc;

use super::backward::Backward;
use super::encode::Encoder;
use super::error::EncodeError;
use super::tokens::{Item, Json, Tokens, unquoted};
use super::{EncodeResult as Result, MAGIC};
use crate::catalog::{Catalog, object_meta};
use crate::graph::Schema;

/// Encodes JSON of built-in kinds in Kubernetes' protobuf, byte for byte as kube-apiserver does. The encoder keeps the
/// memory of a result for the next result.
///
/// ```
/// use windlass_schema::{Catalog, ProtobufEncoder, decode_protobuf};
///
/// let catalog = Catalog::builtin();
/// let mut encoder = ProtobufEncoder::new(catalog.clone());
/// let json = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"b":"c"}}"#;
/// let bytes = encoder.object(json).unwrap();
/// assert!(bytes.starts_with(b"k8s\0"));
/// assert_eq!(decode_protobuf(&catalog, bytes).unwrap()["data"]["b"], "c");
/// ```
pub struct ProtobufEncoder {
    catalog: Arc<Catalog>,
    tokens: Tokens,
    out: Backward,
    stack: Vec<Item>,
}

impl ProtobufEncoder {
    /// Creates an encoder of the kinds of a catalog.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, tokens: Tokens::default(), out: Backward::default(), stack: Vec::new() }
    }

    /// Encodes an object with `apiVersion` and `kind` as a body of type `application/vnd.kubernetes.protobuf`. The
    /// object is of a built-in kind, of a kind of `meta/v1` (`Status`, `APIResourceList`), or a `PartialObjectMetadata` of any
    /// kind.
    ///
    /// # Errors
    /// The kind has no encoding, or a value does not have the type of the field.
    pub fn object(&mut self, json: &[u8]) -> Result<&[u8]> {
        self.out.clear();
        self.enveloped(json)?;
        Ok(self.out.as_slice())
    }

    /// Encodes an event of a watch: the length in four bytes, the highest byte first, and then the message of the event.
    ///
    /// # Errors
    /// As [`ProtobufEncoder::object`] for the object of the event.
    pub fn event(&mut self, change: &str, object: &[u8]) -> Result<&[u8]> {
        self.out.clear();
        self.enveloped(object)?;
        // The object is a `RawExtension`, whose field 1 has the bytes.
        self.out.head(1, 0);
        self.out.head(2, 0);
        self.out.field(1, change.as_bytes());
        let length =
            u32::try_from(self.out.len()).map_err(|_| EncodeError::new("the event is larger than 4 GiB"))?;
        self.out.bytes(&length.to_be_bytes());
        Ok(self.out.as_slice())
    }

    /// Encodes an object as the message of a schema, without the kind, as in a list.
    ///
    /// # Errors
    /// The schema is not of a built-in kind, or a value does not have the type of the field.
    pub fn message(&mut self, schema: &Schema, json: &[u8]) -> Result<&[u8]> {
        self.out.clear();
        let json = self.tokens.read(json)?;
        write(schema, json, Some(0), &mut self.out, &mut self.stack)?;
        Ok(self.out.as_slice())
    }

    /// Encodes the metadata of an object as the message of a `PartialObjectMetadata`, without the kind, as in a list.
    ///
    /// # Errors
    /// A value does not have the type of the field.
    pub fn partial_metadata(&mut self, metadata: &[u8]) -> Result<&[u8]> {
        self.out.clear();
        let json = self.tokens.read(metadata)?;
        write_partial_metadata(json, Some(0), &mut self.out, &mut self.stack)?;
        Ok(self.out.as_slice())
    }

    /// Writes an object in the envelope of a body.
    fn enveloped(&mut self, json: &[u8]) -> Result<()> {
        let json = self.tokens.read(json)?;
        let text =
            |name: &[u8]| json.member(0, name).map(|item| unquoted(json.text(item))).unwrap_or_default();
        let (api_version, kind) = (text(b"apiVersion"), text(b"kind"));
        let out = &mut self.out;
        // The content encoding and the content type.
        out.field(4, &[]);
        out.field(3, &[]);
        let raw = out.len();
        if kind == b"PartialObjectMetadata" {
            write_partial_metadata(json, json.member(0, b"metadata"), out, &mut self.stack)?;
        } else {
            let schema = schema(&self.catalog, api_version, kind)?;
            write(&schema, json, Some(0), out, &mut self.stack)?;
        }
        out.head(2, raw);
        let type_meta = out.len();
        out.field(2, kind);
        out.field(1, api_version);
        out.head(1, type_meta);
        out.bytes(MAGIC);
        Ok(())
    }
}

/// Returns the schema of a kind. The documents of discovery and some statuses have no group.
fn schema(catalog: &Catalog, api_version: &[u8], kind: &[u8]) -> Result<Schema> {
    let (version, kind) = (String::from_utf8_lossy(api_version), String::from_utf8_lossy(kind));
    let (group, of_group) = version.rsplit_once('/').unwrap_or(("", &version));
    let of_meta = || catalog.definition(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"));
    let found = catalog.schema(group, of_group, &kind).or_else(|| of_meta().filter(|_| group.is_empty()));
    found.ok_or_else(|| {
        EncodeError::new(format!(
            "the kind {kind} of version {version:?} cannot be encoded to a protobuf message"
        ))
    })
}

fn write(
    schema: &Schema,
    json: Json<'_>,
    item: Option<Item>,
    out: &mut Backward,
    stack: &mut Vec<Item>,
) -> Result<()> {
    let root = schema.root();
    let Some(definition) = root.name else {
        return Err(EncodeError::new("the schema has no protobuf message"));
    };
    stack.clear();
    Encoder { definitions: root.definitions, json, out, stack, depth: 0 }.message(definition, item)
}

/// Writes a message with the metadata in field 1.
fn write_partial_metadata(
    json: Json<'_>,
    metadata: Option<Item>,
    out: &mut Backward,
    stack: &mut Vec<Item>,
) -> Result<()> {
    let end = out.len();
    write(&object_meta(), json, metadata, out, stack)?;
    out.head(1, end);
    Ok(())
}
