//! Describes why JSON does not decode as a type, without repeating any value.
//!
//! The messages of `serde_json` contain values. Here the JSON is decoded again with an error type that contains only the path and
//! the kinds of the expected and the actual value.

use std::fmt::{self, Write};

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::Value;

/// Describes the first problem of decoding `json` as a `K`. `error` is the error of `serde_json`.
pub(super) fn find<K: DeserializeOwned>(json: &[u8], error: &serde_json::Error) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(json) else {
        return format!("invalid JSON at line {} column {}", error.line(), error.column());
    };
    match K::deserialize(Node(&value)) {
        Err(problem) => problem.to_string(),
        // Only `serde_json` rejects it, because a field is given twice, for example.
        Ok(_) => format!("the value at line {} column {} is not accepted", error.line(), error.column()),
    }
}

/// A step from a value to one in it.
#[derive(Debug)]
enum Segment {
    Index(usize),
    Member(String),
}

/// The maximum length of a printed path, in bytes.
const MAX_PATH: usize = 256;

/// Formats the path of these segments. Keys with unusual characters are quoted.
fn path<'a>(segments: impl Iterator<Item = &'a Segment>) -> String {
    let mut text = String::new();
    for segment in segments {
        let written = match segment {
            Segment::Index(index) => write!(text, "[{index}]"),
            Segment::Member(key) if is_plain(key) => {
                write!(text, "{}{key}", if text.is_empty() { "" } else { "." })
            }
            Segment::Member(key) => write!(text, "[{key:?}]"),
        };
        if written.is_err() || text.len() > MAX_PATH {
            let end = text.floor_char_boundary(MAX_PATH);
            text.truncate(end);
            text.push('…');
            break;
        }
    }
    text
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$'))
}

/// What is wrong with a value, and where.
#[derive(Debug)]
struct Problem {
    what: String,
    /// The way to the value, its last step first.
    way: Vec<Segment>,
}

impl Problem {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), way: Vec::new() }
    }

    fn mismatch(expected: &dyn Expected, found: impl fmt::Display) -> Self {
        Self::new(format!("expected {expected}, found {found}"))
    }

    /// Says that the value is behind this step.
    fn behind(mut self, segment: Segment) -> Self {
        self.way.push(segment);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = path(self.way.iter().rev());
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    /// Drops the message, which may contain the value, unless it is that of an untagged enum.
    fn custom<T: fmt::Display>(message: T) -> Self {
        const UNTAGGED: &str = "data did not match any variant of untagged enum ";
        let message = message.to_string();
        match message.strip_prefix(UNTAGGED) {
            Some(name) if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
                Self::new(format!("matches no variant of {name}"))
            }
            _ => Self::new("the value is not accepted by its type"),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::mismatch(expected, format_args!("{}", kind(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::mismatch(expected, format_args!("{} with another value", kind(&found)))
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::mismatch(expected, "another length")
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("expected {}, found another string", alternatives(expected)))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("expected the fields {}, found another one", alternatives(expected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the field `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the field `{field}` is given twice"))
    }
}

/// Returns the kind of a value.
fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a number with a fraction",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Bytes(_) => "bytes",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "an array",
        Unexpected::Map => "an object",
        _ => "a value of another kind",
    }
}

fn alternatives(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [only] => format!("`{only}`"),
        names => format!("one of `{}`", names.join("`, `")),
    }
}

/// A JSON value whose deserializer fails with [`Problem`].
#[derive(Clone, Copy)]
struct Node<'a>(&'a Value);

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                let mut items = Items { items: items.iter().enumerate() };
                let value = visitor.visit_seq(&mut items)?;
                complete(items.items.len(), value)
            }
            Value::Object(members) => {
                let mut members = Members { members: members.iter(), current: None };
                let value = visitor.visit_map(&mut members)?;
                complete(members.members.len(), value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self.0 {
            Value::String(variant) => visitor.visit_enum(variant.as_str().into_deserializer()),
            Value::Object(members) if members.len() == 1 => {
                let members = Members { members: members.iter(), current: None };
                visitor.visit_enum(MapAccessDeserializer::new(members))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// Returns `value`, if its type has asked for all parts of the JSON.
fn complete<T>(left: usize, value: T) -> Result<T, Problem> {
    if left == 0 { Ok(value) } else { Err(Problem::new("there are more items than the type has")) }
}

/// The items of an array.
struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Value>>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Problem> {
        let Some((index, item)) = self.items.next() else { return Ok(None) };
        seed.deserialize(Node(item)).map(Some).map_err(|problem| problem.behind(Segment::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The members of an object.
struct Members<'a> {
    members: serde_json::map::Iter<'a>,
    /// The member whose key was read.
    current: Option<(&'a String, &'a Value)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        self.current = self.members.next();
        let Some((key, _)) = self.current else { return Ok(None) };
        let read = seed.deserialize(Key(key)).map(Some);
        read.map_err(|problem| problem.behind(Segment::Member(key.clone())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let Some((key, value)) = self.current.take() else {
            return Err(Problem::new("its type reads values before their keys"));
        };
        seed.deserialize(Node(value)).map_err(|problem| problem.behind(Segment::Member(key.clone())))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// The key of a member. As in `serde_json`, it may be read as a number.
#[derive(Clone, Copy)]
struct Key<'a>(&'a str);

macro_rules! keys_of {
    ($($method:ident $visit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_borrowed_str(self.0)
    }

    keys_of! {
        deserialize_bool visit_bool,
        deserialize_i8 visit_i8,
        deserialize_i16 visit_i16,
        deserialize_i32 visit_i32,
        deserialize_i64 visit_i64,
        deserialize_i128 visit_i128,
        deserialize_u8 visit_u8,
        deserialize_u16 visit_u16,
        deserialize_u32 visit_u32,
        deserialize_u64 visit_u64,
        deserialize_u128 visit_u128,
        deserialize_f32 visit_f32,
        deserialize_f64 visit_f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
