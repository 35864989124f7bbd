//! The JSON form of field sets: `fieldsV1` in `metadata.managedFields`.
//!
//! A set is an object with a member for each element: `f:` and the name of a field, `k:` and the key fields
//! of a list element, `v:` and the value of a set element, or `i:` and an index. The value of the member
//! holds the rest of the paths in the same form. A member `.` of the value marks the element alone as a path.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use super::error::FieldsError;
use super::field_set::{Entry, FieldSet};
use super::path_element::PathElement;
use crate::go::{float_of, go_float};

/// The maximum nesting of a `fieldsV1`.
const MAX_DEPTH: usize = 450;

impl FieldSet {
    /// Reads a set from `fieldsV1`. Elements of an unknown type are ignored. Numbers in keys and values are read as
    /// floats, as Kubernetes does.
    ///
    /// # Errors
    /// If a member is no path element, a value is no object, or objects nest too deeply.
    pub fn from_v1(fields: &Value) -> Result<Self, FieldsError> {
        Ok(read(fields, MAX_DEPTH)?.0)
    }

    /// Returns the set as `fieldsV1`.
    pub fn to_v1(&self) -> Value {
        Value::Object(members(self))
    }

    /// Works like [`to_v1`](Self::to_v1), and frees the set on the way: the set of a large object takes as much memory as the value.
    pub fn into_v1(self) -> Value {
        Value::Object(into_members(self))
    }

    /// Writes the set as `fieldsV1`. The output equals the output of Kubernetes byte for byte: compact, with
    /// the elements in the order of [`PathElement`].
    ///
    /// ```
    /// use windlass_schema::fields::{FieldSet, PathElement};
    ///
    /// let mut set = FieldSet::default();
    /// let port = PathElement::key([("port", 80.into())]);
    /// set.insert(&[PathElement::field("ports"), port.clone()]);
    /// set.insert(&[PathElement::field("ports"), port, PathElement::field("name")]);
    /// let mut text = String::new();
    /// set.write_v1(&mut text);
    /// assert_eq!(text, r#"{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}"#);
    /// ```
    pub fn write_v1(&self, out: &mut String) {
        write_set(self, false, &mut String::new(), out);
    }
}

/// Reads a set. Also returns whether the parent element alone is a path.
fn read(fields: &Value, depth: usize) -> Result<(FieldSet, bool), FieldsError> {
    let members = match fields {
        Value::Object(members) => members,
        Value::Null => return Ok((FieldSet::default(), true)),
        other => {
            return Err(FieldsError(format!("expected an object, found {}", crate::go::json_type(other))));
        }
    };
    let depth = depth.checked_sub(1).ok_or_else(|| FieldsError("fields nest too deeply".into()))?;
    let mut entries = Vec::with_capacity(members.len());
    let mut member = false;
    for (name, value) in members {
        if name == "." {
            member = true;
            continue;
        }
        let Some(element) = element(name)? else { continue };
        let (below, member) = read(value, depth)?;
        if member || !below.is_empty() {
            entries.push(Entry { element, member, below });
        }
    }
    let set = FieldSet::of_entries(entries);
    let member = member || set.is_empty();
    Ok((set, member))
}

/// Reads a path element; returns `None` for an unknown type.
fn element(text: &str) -> Result<Option<PathElement>, FieldsError> {
    let malformed = |problem: &str| FieldsError(format!("{problem}: {text:?}"));
    let bytes = text.as_bytes();
    if bytes.len() < 2 {
        return Err(malformed("path element has no type"));
    }
    if bytes[1] != b':' {
        return Err(malformed("path element has no colon"));
    }
    let content = text.get(2..).unwrap_or_default();
    let json = || serde_json::from_str(content).map_err(|error| malformed(&error.to_string()));
    Ok(Some(match bytes[0] {
        b'f' => PathElement::field(content),
        b'v' => {
            let mut value = json()?;
            read_floats(&mut value);
            PathElement::Value(Arc::new(value))
        }
        b'k' => match json()? {
            Value::Object(fields) => key(fields),
            Value::Null => key(Map::new()),
            _ => return Err(malformed("key is no object")),
        },
        b'i' => PathElement::Index(content.parse().map_err(|_| malformed("index is no number"))?),
        _ => return Ok(None),
    }))
}

/// Members of an object are sorted already.
fn key(fields: Map<String, Value>) -> PathElement {
    let fields = fields.into_iter().map(|(name, mut value)| {
        read_floats(&mut value);
        (name.into_boxed_str(), value)
    });
    PathElement::Key(fields.collect())
}

/// Turns integers into floats.
fn read_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(read_floats),
        Value::Object(members) => members.values_mut().for_each(read_floats),
        _ => {}
    }
}

fn members(set: &FieldSet) -> Map<String, Value> {
    let entries = set.entries().iter();
    entries.map(|entry| member(&entry.element, entry.member, members(&entry.below))).collect()
}

fn into_members(set: FieldSet) -> Map<String, Value> {
    match set.into_entries() {
        Ok(entries) => {
            let entries = entries.into_iter();
            entries.map(|entry| member(&entry.element, entry.member, into_members(entry.below))).collect()
        }
        Err(shared) => members(&shared),
    }
}

/// Returns the member for an element, with the members for the rest of the paths.
fn member(element: &PathElement, is_path: bool, mut below: Map<String, Value>) -> (String, Value) {
    let mut name = String::new();
    write_element(element, &mut name);
    if is_path && !below.is_empty() {
        below.insert(".".to_owned(), Value::Object(Map::new()));
    }
    (name, Value::Object(below))
}

/// Writes a set. `member` is true if the parent element alone is a path. `name` is a buffer.
fn write_set(set: &FieldSet, member: bool, name: &mut String, out: &mut String) {
    out.push('{');
    if member {
        out.push_str("\".\":{}");
    }
    for (index, entry) in set.entries().iter().enumerate() {
        if member || index > 0 {
            out.push(',');
        }
        if let PathElement::Field(field) = &entry.element {
            out.push_str("\"f:");
            write_escaped(field, false, out);
            out.push('"');
        } else {
            name.clear();
            write_element(&entry.element, name);
            write_string(name, false, out);
        }
        out.push(':');
        write_set(&entry.below, entry.member && !entry.below.is_empty(), name, out);
    }
    out.push('}');
}

fn write_element(element: &PathElement, out: &mut String) {
    match element {
        PathElement::Field(name) => {
            out.push_str("f:");
            out.push_str(name);
        }
        PathElement::Key(fields) => {
            out.push_str("k:");
            let fields = fields.iter().map(|(name, value)| (&**name, value));
            write_members(fields, false, out);
        }
        PathElement::Value(value) => {
            out.push_str("v:");
            write_json(value, out);
        }
        PathElement::Index(index) => _ = write!(out, "i:{index}"),
    }
}

fn write_members<'m>(members: impl Iterator<Item = (&'m str, &'m Value)>, html: bool, out: &mut String) {
    out.push('{');
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(name, html, out);
        out.push(':');
        write_json(value, out);
    }
    out.push('}');
}

/// Writes a value like the JSON library of Kubernetes' field sets. The escapes differ from Go's JSON.
fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => _ = write!(out, "{value}"),
        Value::Number(number) => match float_of(number) {
            Some(float) => out.push_str(&go_float(float, 1e-6, 1e21)),
            None => _ = write!(out, "{number}"),
        },
        Value::String(text) => write_string(text, true, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            write_members(members.iter().map(|(name, value)| (name.as_str(), value)), true, out);
        }
    }
}

fn write_string(text: &str, html: bool, out: &mut String) {
    out.push('"');
    write_escaped(text, html, out);
    out.push('"');
}

/// Writes the content of a JSON string. With `html`, characters that are special in HTML or JavaScript are escaped.
fn write_escaped(text: &str, html: bool, out: &mut String) {
    let special = |character: char| match character {
        '\0'..='\x1f' | '"' | '\\' => true,
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => html,
        _ => false,
    };
    let mut rest = text;
    while let Some(index) = rest.find(special) {
        out.push_str(&rest[..index]);
        let mut after = rest[index..].chars();
        match after.next() {
            Some(quoted @ ('"' | '\\')) => out.extend(['\\', quoted]),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(other) => _ = write!(out, "\\u{:04x}", other as u32),
            None => {}
        }
        rest = after.as_str();
    }
    out.push_str(rest);
}
