//! Aggregated discovery in protobuf. The catalog has no messages of `apidiscovery.k8s.io`, because no resource has these kinds.

use serde_json::Value;

/// The first bytes of a body in protobuf.
const MAGIC: &[u8] = b"k8s\0";
/// The wire types of protobuf.
const VARINT: u64 = 0;
const BYTES: u64 = 2;

/// The form of a field.
enum Form {
    /// A text. An absent text is written as an empty text.
    Text,
    /// A list of texts.
    Texts,
    /// The number zero: a number that discovery never sets.
    Zero,
    /// A message. An absent message is written with empty fields.
    Message(&'static [Field]),
    /// A message that is left out if absent.
    Optional(&'static [Field]),
    /// A list of messages.
    Messages(&'static [Field]),
}

/// A field of a message: the name in JSON and the form. The number of a field is the position in the message, from 1.
type Field = (&'static str, Form);

const KIND: &[Field] = &[("group", Form::Text), ("version", Form::Text), ("kind", Form::Text)];

const SUBRESOURCE: &[Field] = &[
    ("subresource", Form::Text),
    ("responseKind", Form::Optional(KIND)),
    ("acceptedTypes", Form::Messages(KIND)),
    ("verbs", Form::Texts),
];

const RESOURCE: &[Field] = &[
    ("resource", Form::Text),
    ("responseKind", Form::Optional(KIND)),
    ("scope", Form::Text),
    ("singularResource", Form::Text),
    ("verbs", Form::Texts),
    ("shortNames", Form::Texts),
    ("categories", Form::Texts),
    ("subresources", Form::Messages(SUBRESOURCE)),
];

const VERSION: &[Field] =
    &[("version", Form::Text), ("resources", Form::Messages(RESOURCE)), ("freshness", Form::Text)];

const OBJECT_META: &[Field] = &[
    ("name", Form::Text),
    ("generateName", Form::Text),
    ("namespace", Form::Text),
    ("selfLink", Form::Text),
    ("uid", Form::Text),
    ("resourceVersion", Form::Text),
    ("generation", Form::Zero),
    ("creationTimestamp", Form::Message(&[])),
];

const GROUP: &[Field] = &[("metadata", Form::Message(OBJECT_META)), ("versions", Form::Messages(VERSION))];

const LIST_META: &[Field] =
    &[("selfLink", Form::Text), ("resourceVersion", Form::Text), ("continue", Form::Text)];

const LIST: &[Field] = &[("metadata", Form::Message(LIST_META)), ("items", Form::Messages(GROUP))];

/// Encodes an `APIGroupDiscoveryList` as the body of a response.
pub(super) fn encode(list: &Value) -> Vec<u8> {
    let text = |name: &str| list[name].as_str().unwrap_or_default();
    let mut kind = Vec::new();
    bytes(&mut kind, 1, text("apiVersion").as_bytes());
    bytes(&mut kind, 2, text("kind").as_bytes());
    let mut body = MAGIC.to_vec();
    bytes(&mut body, 1, &kind);
    bytes(&mut body, 2, &message(list, LIST));
    // The encoding and the media type of the content.
    bytes(&mut body, 3, b"");
    bytes(&mut body, 4, b"");
    body
}

fn message(value: &Value, fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, (name, form)) in (1..).zip(fields) {
        field(&mut out, number, &value[name], form);
    }
    out
}

fn field(out: &mut Vec<u8>, number: u64, value: &Value, form: &Form) {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match form {
        Form::Text => bytes(out, number, text(value).as_bytes()),
        Form::Texts => items.iter().for_each(|item| bytes(out, number, text(item).as_bytes())),
        Form::Zero => out.extend([tag(number, VARINT), 0]),
        Form::Message(fields) => bytes(out, number, &message(value, fields)),
        Form::Optional(_) if value.is_null() => {}
        Form::Optional(fields) => bytes(out, number, &message(value, fields)),
        Form::Messages(fields) => items.iter().for_each(|item| bytes(out, number, &message(item, fields))),
    }
}

/// Writes a field of a text or a message.
fn bytes(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    out.push(tag(number, BYTES));
    let mut length = content.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
}

/// Returns the tag of a field. The messages have fewer than 16 fields.
fn tag(number: u64, wire_type: u64) -> u8 {
    (number << 3 | wire_type) as u8
}
