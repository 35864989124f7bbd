//! Types and values of the specification's tests.

use std::cmp::Ordering;

use serde_json::Value as Json;
use windlass_cel::{Entries, Key, List, Map, Text, Timestamp, Type, Value, duration_from_text};

/// Returns a type; `None` for messages.
pub(super) fn type_of(json: &Json) -> Option<Type> {
    let (kind, of) = json.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "primitive" => match of.as_str()? {
            "BOOL" => Type::Bool,
            "INT64" => Type::Int,
            "UINT64" => Type::Uint,
            "DOUBLE" => Type::Double,
            "STRING" => Type::String,
            "BYTES" => Type::Bytes,
            _ => return None,
        },
        "wellKnown" => match of.as_str()? {
            "TIMESTAMP" => Type::Timestamp,
            "DURATION" => Type::Duration,
            _ => return None,
        },
        "listType" => Type::list(type_of(&of["elemType"])?),
        "mapType" => Type::map(type_of(&of["keyType"])?, type_of(&of["valueType"])?),
        "abstractType" if of["name"] == "optional_type" => Type::optional(type_of(&of["parameterTypes"][0])?),
        _ => return None,
    })
}

/// Returns the text of a type, as the checker writes the type.
pub(super) fn type_text(json: &Json) -> String {
    let Some((kind, of)) = json.as_object().and_then(|members| members.iter().next()) else {
        return "type".to_owned();
    };
    if let Some(known) = type_of(json) {
        return known.to_string();
    }
    match kind.as_str() {
        "type" => format!("type({})", type_text(of)),
        "abstractType" => {
            let parameters: Vec<String> = super::array(of, "parameterTypes").map(type_text).collect();
            format!("{}({})", of["name"].as_str().unwrap_or_default(), parameters.join(", "))
        }
        "typeParam" => "dyn".to_owned(),
        "listType" => format!("list({})", type_text(&of["elemType"])),
        "mapType" => format!("map({}, {})", type_text(&of["keyType"]), type_text(&of["valueType"])),
        _ => json.to_string(),
    }
}

/// Returns a value; `None` for messages.
pub(super) fn value_of(json: &Json) -> Option<Value<'static>> {
    let (kind, of) = json.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "nullValue" => Value::Null,
        "boolValue" => Value::Bool(of.as_bool()?),
        "int64Value" => Value::Int(of.as_str()?.parse().ok()?),
        "uint64Value" => Value::Uint(of.as_str()?.parse().ok()?),
        "doubleValue" => Value::Double(match of {
            Json::String(text) if text == "NaN" => f64::NAN,
            Json::String(text) if text == "Infinity" => f64::INFINITY,
            Json::String(text) if text == "-Infinity" => f64::NEG_INFINITY,
            other => other.as_f64()?,
        }),
        "stringValue" => Value::text(of.as_str()?),
        "bytesValue" => Value::Bytes(base64(of.as_str()?)?.into()),
        "listValue" => {
            let values: Option<Vec<_>> = super::array(of, "values").map(value_of).collect();
            Value::List(List::Values(values?.into()))
        }
        "mapValue" => {
            let mut entries = Entries::default();
            for entry in super::array(of, "entries") {
                let key = match value_of(&entry["key"])? {
                    Value::Bool(value) => Key::Bool(value),
                    Value::Int(value) => Key::Int(value),
                    Value::Uint(value) => Key::Uint(value),
                    Value::String(text) => Key::String(Text::from(&*text)),
                    _ => return None,
                };
                entries.insert(key, value_of(&entry["value"])?);
            }
            Value::Map(Map::Values(entries.into()))
        }
        "typeValue" => Value::type_named(of.as_str()?),
        "objectValue" => match of["@type"].as_str()? {
            "type.googleapis.com/google.protobuf.Duration" => {
                Value::Duration(duration_from_text(of["value"].as_str()?)?)
            }
            "type.googleapis.com/google.protobuf.Timestamp" => {
                Value::Timestamp(Timestamp::parse(of["value"].as_str()?)?)
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Returns whether two values have the same type and are equal; NaN equals NaN.
pub(super) fn same(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (one, other) {
        (Value::Double(a), Value::Double(b)) => {
            a.partial_cmp(b) == Some(Ordering::Equal) || a.is_nan() && b.is_nan()
        }
        (Value::List(a), Value::List(b)) => {
            let pairs = a.iter().zip(b.iter());
            a.len() == b.len() && pairs.into_iter().all(|pair| matches!(pair, (Ok(a), Ok(b)) if same(&a, &b)))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.keys().iter().all(|key| match (a.get(key), b.get(key)) {
                    (Ok(Some(a)), Ok(Some(b))) => same(&a, &b),
                    _ => false,
                })
        }
        _ => one.type_name() == other.type_name() && one.to_string() == other.to_string(),
    }
}

/// Decodes base64.
fn base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for character in text.trim_end_matches('=').chars() {
        bits = bits << 6 | ALPHABET.find(character)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}
