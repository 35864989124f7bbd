//! Conversions between types.

use std::sync::Arc;

use super::{
    Library, Text, Timestamp, TypeName, Value, display::go_float, duration_from_text, duration_text,
};
use crate::error::Error;

/// The type that a value is converted to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Bool,
    Bytes,
    Double,
    Duration,
    Int,
    String,
    Timestamp,
    Uint,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Bytes => "bytes",
            Self::Double => "double",
            Self::Duration => "google.protobuf.Duration",
            Self::Int => "int",
            Self::String => "string",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Uint => "uint",
        }
    }
}

const INT_OVERFLOW: Error = Error::fixed("integer overflow");
const UINT_OVERFLOW: Error = Error::fixed("unsigned integer overflow");

/// Converts a value to a type.
pub(crate) fn convert<'a>(value: &Value<'a>, target: Target) -> Result<Value<'a>, Error> {
    let converted = match (target, value) {
        (Target::Bool, Value::Bool(_))
        | (Target::Bytes, Value::Bytes(_))
        | (Target::Double, Value::Double(_))
        | (Target::Duration, Value::Duration(_))
        | (Target::Int, Value::Int(_))
        | (Target::String, Value::String(_))
        | (Target::Timestamp, Value::Timestamp(_))
        | (Target::Uint, Value::Uint(_)) => Some(value.clone()),
        (Target::Bytes, Value::String(text)) => Some(Value::Bytes(Arc::from(text.as_bytes()))),
        (_, Value::String(text)) => from_text(text, target),
        (Target::String, value) => to_text(value)?.map(Value::text),
        (Target::Int, value) => to_int(value)?.map(Value::Int),
        (Target::Uint, value) => to_uint(value)?.map(Value::Uint),
        (Target::Double, Value::Int(int)) => Some(Value::Double(*int as f64)),
        (Target::Double, Value::Uint(uint)) => Some(Value::Double(*uint as f64)),
        (Target::Timestamp, Value::Int(seconds)) => {
            let timestamp = Timestamp::from_seconds(*seconds).ok_or(Error::fixed("timestamp overflow"))?;
            Some(Value::Timestamp(timestamp))
        }
        _ => None,
    };
    converted.ok_or_else(|| {
        Error::new(format!("type conversion error from '{}' to '{}'", value.type_name(), target.name()))
    })
}

/// Returns the type of a value.
pub(crate) fn type_of(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Library(Library::Message(message)) => Value::type_named(message.name()),
        value => Value::Type(TypeName(value.type_name().into())),
    }
}

fn from_text(text: &str, target: Target) -> Option<Value<'static>> {
    match target {
        Target::Int => text.parse().ok().map(Value::Int),
        Target::Uint => (!text.starts_with('+')).then(|| text.parse().ok()).flatten().map(Value::Uint),
        Target::Double => parse_double(text).map(Value::Double),
        Target::Bool => match text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        Target::Duration => duration_from_text(text).map(Value::Duration),
        Target::Timestamp => Timestamp::parse(text).map(Value::Timestamp),
        _ => None,
    }
}

fn parse_double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let names_infinity = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf");
    (!value.is_infinite() || names_infinity).then_some(value)
}

fn to_text(value: &Value<'_>) -> Result<Option<String>, Error> {
    Ok(Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go_float(*value),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(Error::fixed("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Value::Duration(nanos) => duration_text(*nanos),
        Value::Timestamp(timestamp) => timestamp.to_string(),
        Value::Type(name) => name.as_str().to_owned(),
        Value::Library(Library::Ip(ip)) => ip.to_string(),
        Value::Library(Library::Cidr(cidr)) => cidr.to_string(),
        _ => return Ok(None),
    }))
}

fn to_int(value: &Value<'_>) -> Result<Option<i64>, Error> {
    Ok(Some(match value {
        Value::Uint(value) => i64::try_from(*value).map_err(|_| INT_OVERFLOW)?,
        Value::Double(value) => {
            let fits = *value > i64::MIN as f64 && *value < i64::MAX as f64;
            if !fits {
                return Err(INT_OVERFLOW);
            }
            *value as i64
        }
        Value::Duration(nanos) => *nanos,
        Value::Timestamp(timestamp) => timestamp.seconds(),
        _ => return Ok(None),
    }))
}

fn to_uint(value: &Value<'_>) -> Result<Option<u64>, Error> {
    Ok(Some(match value {
        Value::Int(value) => u64::try_from(*value).map_err(|_| UINT_OVERFLOW)?,
        Value::Double(value) => {
            let fits = *value >= 0.0 && *value < u64::MAX as f64;
            if !fits {
                return Err(UINT_OVERFLOW);
            }
            *value as u64
        }
        _ => return Ok(None),
    }))
}

/// Returns a text that lives as long as needed.
impl From<&str> for Text<'static> {
    fn from(text: &str) -> Self {
        Self::Shared(text.into())
    }
}
