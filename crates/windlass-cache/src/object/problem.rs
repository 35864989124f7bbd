//! Describes why JSON does not decode as a type, without repeating any value.
//!
//! The messages of `serde_json` contain values. Here the JSON is decoded again with an error type that contains only the path and
//! the kinds of the expected and the actual value.

use std::fmt::{self, Write};

use serde::{
    Deserializer, de,
    de::{
        DeserializeOwned, Expected, IntoDeserializer, Unexpected, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// Describes the first problem of decoding `json` as a `K`. `error` is the error of `serde_json`.
pub(super) fn find<K: DeserializeOwned>(json: &[u8], error: &serde_json::Error) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(json) else {
        return format!("invalid JSON at line {} column {}", error.line(), error.column());
    };
    match serde_path_to_error::deserialize::<_, K>(Node(&value)) {
        Err(error) => {
            let mut text = path(error.path());
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&error.inner().0);
            text
        }
        // Only `serde_json` rejects it, because a field is given twice, for example.
        Ok(_) => format!("the value at line {} column {} is not accepted", error.line(), error.column()),
    }
}

/// The maximum length of a printed path, in bytes.
const MAX_PATH: usize = 256;

/// Formats a path. Keys with unusual characters are quoted.
fn path(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        let written = match segment {
            Segment::Seq { index } => write!(text, "[{index}]"),
            Segment::Map { key } | Segment::Enum { variant: key } if is_plain(key) => {
                write!(text, "{}{key}", if text.is_empty() { "" } else { "." })
            }
            Segment::Map { key } | Segment::Enum { variant: key } => write!(text, "[{key:?}]"),
            Segment::Unknown => write!(text, "{}?", if text.is_empty() { "" } else { "." }),
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

/// A description of what is wrong with a value.
#[derive(Debug)]
struct Problem(String);

impl Problem {
    fn mismatch(expected: &dyn Expected, found: impl fmt::Display) -> Self {
        Self(format!("expected {expected}, found {found}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
                Self(format!("matches no variant of {name}"))
            }
            _ => Self("the value is not accepted by its type".to_owned()),
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
        Self(format!("expected {}, found another string", alternatives(expected)))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Self(format!("expected the fields {}, found another one", alternatives(expected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(format!("the field `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self(format!("the field `{field}` is given twice"))
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

impl<'de> IntoDeserializer<'de, Problem> for Node<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

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
                let mut items = SeqDeserializer::new(items.iter().map(Node));
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            Value::Object(members) => {
                let mut members =
                    MapDeserializer::new(members.iter().map(|(key, value)| (Key(key), Node(value))));
                let value = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(value)
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
                let members = members.iter().map(|(key, value)| (Key(key), Node(value)));
                visitor.visit_enum(de::value::MapAccessDeserializer::new(MapDeserializer::new(members)))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The key of a member. As in `serde_json`, it may be read as a number.
#[derive(Clone, Copy)]
struct Key<'a>(&'a str);

impl<'de> IntoDeserializer<'de, Problem> for Key<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

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
