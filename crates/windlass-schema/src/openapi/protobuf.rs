//! The OpenAPI v2 document in protobuf, the form that client-go asks for: the messages of gnostic's `openapi.v2`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::extension::ExtensionDocument;
use super::pieces::Pieces;
use super::version_two::{self, Parts};

/// Writes the document of [`openapi_v2`](super::openapi_v2) in protobuf, in pieces.
pub fn openapi_v2_protobuf(
    documents: impl IntoIterator<Item = Value>,
    extensions: impl IntoIterator<Item = ExtensionDocument>,
    version: &str,
) -> Vec<Vec<u8>> {
    let encode = |item: &Value| message(|out| path_item(out, item));
    let Parts { paths, mut definitions, mut parameters } = Parts::new(documents, extensions, encode);
    encode_all(&mut definitions, schema);
    encode_all(&mut parameters, parameter);
    let mut out = Pieces::default();
    let start = message(|out| {
        out.string(1, "2.0");
        out.message(2, |out| {
            let info = version_two::info(version);
            out.text(1, &info, "title");
            out.text(2, &info, "version");
        });
    });
    out.add(&start);
    add_pairs(&mut out, 8, 2, paths);
    add_pairs(&mut out, 9, 1, definitions);
    if !parameters.is_empty() {
        add_pairs(&mut out, 10, 1, parameters);
    }
    out.add(&message(security));
    out.finish()
}

/// Encodes values that are in JSON.
fn encode_all(values: &mut BTreeMap<String, Vec<u8>>, write: fn(&mut Message, &Value)) {
    for encoded in values.values_mut() {
        let value: Value = serde_json::from_slice(encoded).unwrap_or_default();
        *encoded = message(|out| write(out, &value));
    }
}

/// Appends a message of pairs, each of a name and an encoded message. Each pair is dropped once the document has the pair.
fn add_pairs(out: &mut Pieces, number: u32, number_of_pair: u32, members: BTreeMap<String, Vec<u8>>) {
    let pair = |name: &str, value: &[u8]| {
        let start = message(|out| {
            out.string(1, name);
            out.start(2, value.len());
        });
        message(|out| out.start(number_of_pair, start.len() + value.len())).into_iter().chain(start).collect()
    };
    let starts: Vec<Vec<u8>> = members.iter().map(|(name, value)| pair(name, value)).collect();
    let size = starts.iter().map(Vec::len).sum::<usize>() + members.values().map(Vec::len).sum::<usize>();
    out.add(&message(|out| out.start(number, size)));
    for (start, (_, value)) in starts.into_iter().zip(members) {
        out.add(&start);
        out.add(&value);
    }
}

fn message(write: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut out = Message::default();
    write(&mut out);
    out.0
}

fn security(out: &mut Message) {
    for requirement in list(&version_two::security()) {
        out.message(12, |out| out.named(1, requirement, |out, scopes| out.texts(1, scopes)));
    }
    out.message(13, |out| {
        out.named(1, &version_two::security_definitions(), |out, token| {
            out.message(2, |out| {
                for (number, name) in [(1, "type"), (2, "name"), (3, "in"), (4, "description")] {
                    out.text(number, token, name);
                }
            });
        });
    });
}

fn path_item(out: &mut Message, item: &Value) {
    let methods =
        [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")];
    for (number, method) in methods {
        if let Some(operation) = item.get(method) {
            out.message(number, |out| self::operation(out, operation));
        }
    }
    parameters(out, 9, &item["parameters"]);
    out.extensions(10, item);
}

fn operation(out: &mut Message, operation: &Value) {
    out.texts(1, &operation["tags"]);
    out.text(3, operation, "description");
    out.text(5, operation, "operationId");
    out.texts(6, &operation["produces"]);
    out.texts(7, &operation["consumes"]);
    parameters(out, 8, &operation["parameters"]);
    out.message(9, |out| {
        out.named(1, &operation["responses"], |out, response| {
            out.message(1, |out| self::response(out, response));
        });
    });
    out.texts(10, &operation["schemes"]);
    out.extensions(13, operation);
}

fn response(out: &mut Message, response: &Value) {
    out.text(1, response, "description");
    if let Some(schema) = response.get("schema") {
        out.message(2, |out| out.message(1, |out| self::schema(out, schema)));
    }
}

fn parameters(out: &mut Message, number: u32, parameters: &Value) {
    for parameter in list(parameters) {
        // A list of parameters has parameters and references; a parameter is a body or a non-body parameter.
        out.message(number, |out| match parameter.get("$ref") {
            Some(_) => out.message(2, |out| out.text(1, parameter, "$ref")),
            None => out.message(1, |out| self::parameter(out, parameter)),
        });
    }
}

fn parameter(out: &mut Message, parameter: &Value) {
    let place = parameter["in"].as_str().unwrap_or_default();
    if place == "body" {
        out.message(1, |out| {
            out.text(1, parameter, "description");
            out.text(2, parameter, "name");
            out.text(3, parameter, "in");
            out.flag(4, parameter, "required");
            out.message(5, |out| schema(out, &parameter["schema"]));
        });
        return;
    }
    // The message of parameters in a query has a field more than that of parameters in a path, before the type.
    let (kind, more) = if place == "query" { (3, 1) } else { (4, 0) };
    out.message(2, |out| {
        out.message(kind, |out| {
            out.flag(1, parameter, "required");
            out.text(2, parameter, "in");
            out.text(3, parameter, "description");
            out.text(4, parameter, "name");
            out.text(5 + more, parameter, "type");
            out.text(6 + more, parameter, "format");
            out.flag(19 + more, parameter, "uniqueItems");
        });
    });
}

fn schema(out: &mut Message, schema: &Value) {
    for (number, name) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")] {
        out.text(number, schema, name);
    }
    for (number, name) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        out.double(number, schema, name);
    }
    for (number, name) in [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")] {
        out.flag(number, schema, name);
    }
    let counts = [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ];
    for (number, name) in counts {
        out.count(number, schema, name);
    }
    out.texts(19, &schema["required"]);
    for value in list(&schema["enum"]) {
        out.any(20, value);
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(allowed)) => out.message(21, |out| out.varint(2, u64::from(*allowed))),
        Some(values) => out.message(21, |out| out.message(1, |out| self::schema(out, values))),
        None => {}
    }
    if schema.get("type").is_some() {
        out.message(22, |out| out.text(1, schema, "type"));
    }
    if let Some(items) = schema.get("items") {
        out.message(23, |out| out.message(1, |out| self::schema(out, items)));
    }
    if schema.get("properties").is_some() {
        out.message(25, |out| out.named(1, &schema["properties"], self::schema));
    }
    if let Some(example) = schema.get("example") {
        out.message(30, |out| out.string(2, &example.to_string()));
    }
    out.extensions(31, schema);
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The fields of a message. A field that the JSON does not have is left out.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn key(&mut self, number: u32, wire_type: u32) {
        self.raw_varint(u64::from(number << 3 | wire_type));
    }

    /// Writes the start of a field of `length` bytes.
    fn start(&mut self, number: u32, length: usize) {
        self.key(number, 2);
        self.raw_varint(length as u64);
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.start(number, bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn string(&mut self, number: u32, text: &str) {
        self.bytes(number, text.as_bytes());
    }

    fn varint(&mut self, number: u32, value: u64) {
        self.key(number, 0);
        self.raw_varint(value);
    }

    fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(number, &inner.0);
    }

    fn text(&mut self, number: u32, owner: &Value, name: &str) {
        if let Some(text) = owner[name].as_str() {
            self.string(number, text);
        }
    }

    fn flag(&mut self, number: u32, owner: &Value, name: &str) {
        if owner[name] == true {
            self.varint(number, 1);
        }
    }

    fn count(&mut self, number: u32, owner: &Value, name: &str) {
        if let Some(count) = owner[name].as_u64() {
            self.varint(number, count);
        }
    }

    fn double(&mut self, number: u32, owner: &Value, name: &str) {
        if let Some(value) = owner[name].as_f64() {
            self.key(number, 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn texts(&mut self, number: u32, texts: &Value) {
        list(texts).iter().filter_map(Value::as_str).for_each(|text| self.string(number, text));
    }

    /// Writes a value of any type as YAML; JSON is a part of YAML.
    fn any(&mut self, number: u32, value: &Value) {
        self.message(number, |out| out.string(2, &value.to_string()));
    }

    /// Writes the members of an object as pairs of a name and a message.
    fn named(&mut self, number: u32, members: &Value, mut write: impl FnMut(&mut Self, &Value)) {
        for (name, value) in members.as_object().into_iter().flatten() {
            self.message(number, |pair| {
                pair.string(1, name);
                pair.message(2, |out| write(out, value));
            });
        }
    }

    /// Writes the members with names that begin with `x-`.
    fn extensions(&mut self, number: u32, owner: &Value) {
        let members = owner.as_object().into_iter().flat_map(Map::iter);
        for (name, value) in members.filter(|(name, _)| name.starts_with("x-")) {
            self.message(number, |pair| {
                pair.string(1, name);
                pair.any(2, value);
            });
        }
    }
}
