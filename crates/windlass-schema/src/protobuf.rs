//! Decodes request bodies in Kubernetes' protobuf to JSON, and encodes replies.
//!
//! Go clients use this encoding for built-in kinds. The field numbers come from the catalog; no kind needs
//! special code.

mod list;
mod object;

mod encode;

mod backward;
mod error;
pub(crate) mod scalar;
mod tokens;
mod wire;

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::catalog::Catalog;
use crate::default::drop_empty;
use crate::go::encode_base64;
use crate::graph::{Edge, NodeRef, ProtoKind, Schema};
pub use error::{DecodeError, EncodeError};
pub use list::ProtobufList;
pub use object::ProtobufEncoder;
use wire::{Field, Fields, Payload};

/// The first bytes of every body.
const MAGIC: &[u8] = b"k8s\0";

/// The maximum nesting of messages; deeper messages are an error.
const MAX_DEPTH: usize = 100;

/// The most messages in a body: a message takes two bytes in the body, and hundreds of bytes as an object with defaults.
const MAX_MESSAGES: usize = 50_000;

/// The place of a message in a body.
#[derive(Clone, Copy)]
struct Place<'a> {
    depth: usize,
    /// The messages that may still follow.
    left: &'a Cell<usize>,
}

impl Place<'_> {
    /// Enters a message.
    fn deeper(self) -> Result<Self> {
        if self.depth == MAX_DEPTH {
            return Err(DecodeError::new("exceeded max depth"));
        }
        let too_many = || DecodeError::new(format!("the object has more than {MAX_MESSAGES} messages"));
        self.left.set(self.left.get().checked_sub(1).ok_or_else(too_many)?);
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

type Result<T> = std::result::Result<T, DecodeError>;
type EncodeResult<T> = std::result::Result<T, EncodeError>;

/// Decodes a body of type `application/vnd.kubernetes.protobuf` to the equivalent JSON object, including `apiVersion`
/// and `kind`.
///
/// # Errors
/// The bytes are not a valid message, or the kind is not in the catalog. The function never panics.
pub fn decode_protobuf(catalog: &Catalog, bytes: &[u8]) -> Result<Value> {
    let Some(envelope) = bytes.strip_prefix(MAGIC) else {
        return Err(DecodeError::new(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ));
    };
    let envelope = Envelope::read(envelope)?;
    let mut object = if envelope.content_type == "application/json" {
        serde_json::from_slice(envelope.raw).map_err(|error| DecodeError::new(error.to_string()))?
    } else {
        let schema = envelope.schema(catalog)?;
        let mut members = Map::new();
        let place = Place { depth: 0, left: &Cell::new(MAX_MESSAGES) };
        message(envelope.raw, schema.root(), [0; 2], &mut members, place)?;
        let mut object = Value::Object(members);
        drop_empty(&mut object, schema.root());
        object
    };
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), envelope.api_version.into());
        members.insert("kind".to_owned(), envelope.kind.into());
    }
    Ok(object)
}

/// `runtime.Unknown`: the type and the encoded bytes of an object.
#[derive(Default)]
struct Envelope<'b> {
    api_version: &'b str,
    kind: &'b str,
    raw: &'b [u8],
    content_encoding: &'b str,
    content_type: &'b str,
}

impl<'b> Envelope<'b> {
    fn read(bytes: &'b [u8]) -> Result<Self> {
        let mut envelope = Self::default();
        for field in Fields::new(bytes) {
            let field = field?;
            match field.number {
                1 => envelope.type_meta(field.bytes()?)?,
                2 => envelope.raw = field.bytes()?,
                3 => envelope.content_encoding = field.text()?,
                4 => envelope.content_type = field.text()?,
                _ => {}
            }
        }
        if !envelope.content_encoding.is_empty() {
            let encoding = crate::go_quote(envelope.content_encoding);
            return Err(DecodeError::new(format!("unsupported content encoding {encoding}")));
        }
        Ok(envelope)
    }

    fn type_meta(&mut self, bytes: &'b [u8]) -> Result<()> {
        for field in Fields::new(bytes) {
            let field = field?;
            match field.number {
                1 => self.api_version = field.text()?,
                2 => self.kind = field.text()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn schema(&self, catalog: &Catalog) -> Result<Schema> {
        let (group, version) = self.api_version.rsplit_once('/').unwrap_or(("", self.api_version));
        // Options may have the version of any group, even of a group that is not built in.
        let options = || {
            let of_meta = self
                .kind
                .ends_with("Options")
                .then(|| format!("io.k8s.apimachinery.pkg.apis.meta.v1.{}", self.kind));
            of_meta.and_then(|name| catalog.definition(&name))
        };
        catalog.schema(group, version, self.kind).or_else(options).ok_or_else(|| {
            let (kind, version) = (crate::go_quote(self.kind), crate::go_quote(self.api_version));
            let text = format!(
                "no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\""
            );
            DecodeError::of_unknown_kind(text, self.api_version, self.kind)
        })
    }
}

/// Reads the fields of a message into `members`. `through` is the path of field numbers to a message that JSON inlines.
fn message(
    bytes: &[u8],
    node: NodeRef<'_>,
    through: [u32; 2],
    members: &mut Map<String, Value>,
    place: Place<'_>,
) -> Result<()> {
    for field in Fields::new(bytes) {
        let field = field?;
        if let Some((name, edge)) = property(node, through, field.number) {
            if edge.proto.is_some_and(|proto| proto.repeated) {
                let items = members.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(items) = items else { continue };
                repeated(node, edge, &field, items, place)?;
            } else if edge.proto.is_some_and(|proto| proto.kind == ProtoKind::Map) {
                let entries = members.entry(name).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(entries) = entries else { continue };
                map_entry(node, node.follow(edge), field.bytes()?, entries, place)?;
            } else {
                let value = value(node, edge, &field, place)?;
                members.insert(name.to_owned(), value);
            }
        } else if let Some(deeper) = inlined(node, through, field.number) {
            message(field.bytes()?, node, deeper, members, place.deeper()?)?;
        }
    }
    Ok(())
}

fn property(node: NodeRef<'_>, through: [u32; 2], number: u32) -> Option<(&str, &Edge)> {
    let mut properties = node.node.properties.iter();
    let (name, edge) = properties.find(|(_, edge)| {
        edge.proto.is_some_and(|proto| proto.number == number && proto.through == through)
    })?;
    Some((name, edge))
}

/// Returns the path to the message in field `number` if JSON inlines that message.
fn inlined(node: NodeRef<'_>, through: [u32; 2], number: u32) -> Option<[u32; 2]> {
    let deeper = match through {
        [0, 0] => [number, 0],
        [first, 0] => [first, number],
        _ => return None,
    };
    let leads = |place: [u32; 2]| place == deeper || deeper[1] == 0 && place[0] == deeper[0];
    let mut edges = node.node.properties.values();
    edges.any(|edge| edge.proto.is_some_and(|proto| leads(proto.through))).then_some(deeper)
}

fn repeated(
    owner: NodeRef<'_>,
    edge: &Edge,
    field: &Field<'_>,
    items: &mut Vec<Value>,
    place: Place<'_>,
) -> Result<()> {
    let Some(inner) = owner.follow(edge).node.items.as_ref() else { return Ok(()) };
    let numeric = edge.proto.is_some_and(|proto| {
        matches!(proto.kind, ProtoKind::Bool | ProtoKind::Int | ProtoKind::Uint | ProtoKind::Double)
    });
    if let (true, Payload::Bytes(packed)) = (numeric, field.payload) {
        let fixed = edge.proto.is_some_and(|proto| proto.kind == ProtoKind::Double);
        for payload in wire::packed(packed, fixed) {
            items.push(value(owner, inner, &Field { number: field.number, payload: payload? }, place)?);
        }
        return Ok(());
    }
    items.push(value(owner, inner, field, place)?);
    Ok(())
}

fn map_entry(
    owner: NodeRef<'_>,
    map: NodeRef<'_>,
    bytes: &[u8],
    entries: &mut Map<String, Value>,
    place: Place<'_>,
) -> Result<()> {
    let Some(crate::graph::Additional::Schema(edge)) = &map.node.additional else { return Ok(()) };
    let mut key = "";
    let mut content = None;
    for field in Fields::new(bytes) {
        let field = field?;
        match field.number {
            1 => key = field.text()?,
            2 => content = Some(value(owner, edge, &field, place)?),
            _ => {}
        }
    }
    let nothing = Field { number: 2, payload: Payload::Bytes(&[]) };
    let content = match content {
        Some(content) => content,
        None => value(owner, edge, &nothing, place)?,
    };
    entries.insert(key.to_owned(), content);
    Ok(())
}

/// Decodes a value. `owner` is the enclosing message.
fn value(owner: NodeRef<'_>, edge: &Edge, field: &Field<'_>, place: Place<'_>) -> Result<Value> {
    let node = owner.follow(edge);
    Ok(match edge.proto.map_or(ProtoKind::Message, |proto| proto.kind) {
        ProtoKind::Bool => Value::Bool(field.varint()? != 0),
        ProtoKind::Int => Value::from(field.varint()? as i64),
        ProtoKind::Uint => Value::from(field.varint()?),
        ProtoKind::Double => scalar::double(field.fixed64()?)?,
        ProtoKind::String => Value::from(field.text()?),
        ProtoKind::Bytes => encode_base64(field.bytes()?).into(),
        ProtoKind::Time => scalar::time(field.bytes()?, false)?,
        ProtoKind::MicroTime => scalar::time(field.bytes()?, true)?,
        ProtoKind::Quantity => scalar::quantity(field.bytes()?)?,
        ProtoKind::IntOrString => scalar::int_or_string(field.bytes()?)?,
        ProtoKind::Raw => scalar::raw(field.bytes()?)?,
        kind @ (ProtoKind::SchemaOrBool | ProtoKind::SchemaOrArray | ProtoKind::SchemaOrStrings) => {
            schema_or(owner, kind, field.bytes()?, place)?
        }
        ProtoKind::List => {
            let mut items = Vec::new();
            let inner = node.node.items.as_ref();
            let number = inner.and_then(|inner| inner.proto).map_or(1, |proto| proto.number);
            for item in Fields::new(field.bytes()?) {
                let item = item?;
                if let Some(inner) = inner.filter(|_| item.number == number) {
                    items.push(value(owner, inner, &item, place)?);
                }
            }
            Value::Array(items)
        }
        ProtoKind::Message | ProtoKind::Map => {
            let mut members = Map::new();
            message(field.bytes()?, node, [0; 2], &mut members, place.deeper()?)?;
            Value::Object(members)
        }
    })
}

/// Decodes a union of `JSONSchemaProps` and a simpler type. The schema is in field 2 of a union with a boolean, and in
/// field 1 of all other unions. Such unions occur only in `JSONSchemaProps`: `owner` is always `JSONSchemaProps`.
fn schema_or(owner: NodeRef<'_>, kind: ProtoKind, bytes: &[u8], place: Place<'_>) -> Result<Value> {
    let schema = |field: &Field<'_>| -> Result<Value> {
        let mut members = Map::new();
        message(field.bytes()?, owner, [0; 2], &mut members, place.deeper()?)?;
        Ok(Value::Object(members))
    };
    let mut found = if kind == ProtoKind::SchemaOrBool { Value::Bool(false) } else { Value::Null };
    for field in Fields::new(bytes) {
        let field = field?;
        match (kind, field.number) {
            (ProtoKind::SchemaOrBool, 1) if found.is_object() => {}
            (ProtoKind::SchemaOrBool, 1) => found = Value::Bool(field.varint()? != 0),
            (ProtoKind::SchemaOrBool, 2) | (_, 1) => found = schema(&field)?,
            (ProtoKind::SchemaOrArray, 2) => push(&mut found, schema(&field)?),
            (ProtoKind::SchemaOrStrings, 2) => push(&mut found, field.text()?.into()),
            _ => {}
        }
    }
    Ok(found)
}

/// Appends an item to an array, or begins an array in the place of null. A schema has precedence.
fn push(array: &mut Value, item: Value) {
    match array {
        Value::Array(items) => items.push(item),
        Value::Null => *array = Value::Array(vec![item]),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
