//! Values of JSON, with or without a schema.

use std::sync::Arc;

use serde_json::{Number, Value as Json};

use super::{Library, List, Map, Text, Timestamp, Value, duration_from_text, worded_duration};
use crate::error::Error;
use crate::schema::{Form, Schema};

/// Returns the value of JSON without a schema.
pub(super) fn dynamic(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => dynamic_number(number),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List::Dynamic(items)),
        Json::Object(members) => Value::Map(Map::Dynamic(members)),
    }
}

fn dynamic_number(number: &Number) -> Value<'static> {
    if let Some(int) = number.as_i64() {
        return Value::Int(int);
    }
    number.as_u64().map_or_else(|| Value::Double(number.as_f64().unwrap_or(f64::NAN)), Value::Uint)
}

/// Returns the value of JSON with a schema.
pub(crate) fn of_schema<'a>(json: &'a Json, schema: &'a Schema) -> Result<Value<'a>, Error> {
    if json.is_null() {
        return if schema.nullable {
            Ok(Value::Null)
        } else {
            Err(Error::fixed("invalid data, got null for schema with nullable=false"))
        };
    }
    match (&schema.form, json) {
        (Form::Object(_) | Form::Map(_), Json::Object(members)) => Ok(Value::Map(Map::Json(members, schema))),
        (Form::List { .. }, Json::Array(items)) => Ok(Value::List(List::Json(items, schema))),
        (Form::String | Form::IntOrString, Json::String(text)) => Ok(Value::String(Text::Borrowed(text))),
        (Form::Int | Form::IntOrString, Json::Number(number)) if number.is_i64() => {
            Ok(Value::Int(number.as_i64().unwrap_or_default()))
        }
        (Form::Double, Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN))),
        (Form::Bool, Json::Bool(value)) => Ok(Value::Bool(*value)),
        (Form::Bytes | Form::Duration | Form::Date | Form::DateTime, Json::String(text)) => {
            formatted(text, &schema.form)
        }
        (Form::Preserved, json) => Ok(Value::Library(Library::Preserved(json))),
        (form, json) => Err(invalid(form, json)),
    }
}

/// Returns the value of a text with a format.
fn formatted(text: &str, form: &Form) -> Result<Value<'static>, Error> {
    use base64::Engine as _;
    match form {
        Form::Duration => {
            duration_from_text(text).or_else(|| worded_duration(text)).map(Value::Duration).ok_or_else(|| {
                Error::new(format!("Invalid duration {text}: unable to parse {text} as duration"))
            })
        }
        Form::Date => Timestamp::parse(&format!("{text}T00:00:00Z"))
            .map(Value::Timestamp)
            .ok_or_else(|| Error::new(format!("Invalid date formatted string {text}: parsing time failed"))),
        Form::DateTime => Timestamp::parse_lenient(text).map(Value::Timestamp).ok_or_else(|| {
            Error::new(format!("Invalid date-time formatted string {text}: parsing time failed"))
        }),
        _ => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map(|bytes| Value::Bytes(Arc::from(bytes)))
            .map_err(|error| Error::new(format!("Invalid byte formatted string {text}: {error}"))),
    }
}

fn invalid(form: &Form, json: &Json) -> Error {
    let found = go_type(json);
    match form {
        Form::Object(_) | Form::Map(_) => {
            Error::fixed("invalid data, expected a map for the provided schema with type=object")
        }
        Form::List { .. } => {
            Error::fixed("invalid data, expected an array for the provided schema with type=array")
        }
        Form::IntOrString => {
            Error::fixed("invalid data, expected XIntOrString value to be either a string or integer")
        }
        Form::Double => Error::new(format!("invalid data, expected float, got {found}")),
        Form::Int => Error::new(format!("invalid data, expected int, got {found}")),
        Form::Bool => Error::new(format!("invalid data, expected bool, got {found}")),
        Form::Unknown(kind) if kind == "array" => {
            Error::fixed("invalid array type, expected Items with a non-empty Schema")
        }
        Form::Unknown(kind) => Error::new(format!(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {kind}"
        )),
        _ => Error::new(format!("invalid data, expected string, got {found}")),
    }
}

/// Returns the name of the Go type of a decoded value.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
