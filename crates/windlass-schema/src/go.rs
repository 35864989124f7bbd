//! Formats values as Go does, for error messages that clients match on.

use std::fmt::Write;

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Number, Value};
pub use windlass_text::go_quote;

/// Formats a value as Go's `json.Marshal` does: compact, with `<`, `>`, `&`, U+2028 and U+2029 escaped.
pub fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Number(number) => out.push_str(&json_number(number)),
        Value::String(text) => write_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(out, name);
                out.push(':');
                write_json(out, value);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn write_json_string(out: &mut String, text: &str) {
    for character in Value::from(text).to_string().chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                _ = write!(out, "\\u{:04x}", character as u32);
            }
            other => out.push(other),
        }
    }
}

/// Formats a number as Go's `%v` does: a float with an exponent from 1e+06 up and below 1e-04.
pub(crate) fn go_number(number: &Number) -> String {
    float_of(number).map_or_else(|| number.to_string(), |value| go_float(value, 1e-4, 1e6))
}

/// Formats a number as the JSON text had it, as far as the value tells: a float without a fraction keeps `.0`.
pub(crate) fn go_literal(number: &Number) -> String {
    if number.is_u64() {
        return number.to_string();
    }
    let text = go_number(number);
    if number.is_f64() && !text.contains(['.', 'e']) { text + ".0" } else { text }
}

fn json_number(number: &Number) -> String {
    let Some(value) = float_of(number) else { return number.to_string() };
    let text = go_float(value, 1e-6, 1e21);
    // Go's JSON encoder removes the leading zero of an exponent.
    text.replace("e-0", "e-")
}

/// Returns the float that Go decodes the number to, or `None` for a 64-bit integer.
pub(crate) fn float_of(number: &Number) -> Option<f64> {
    if number.is_i64() { None } else { number.as_f64() }
}

/// Formats a float with an exponent below `small` and from `large` up.
pub(crate) fn go_float(value: f64, small: f64, large: f64) -> String {
    if value == 0.0 || value.abs() >= small && value.abs() < large {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

/// Formats a value as Go's `%v` does.
pub fn go_value(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// Formats an object as Go's `%v` does.
pub(crate) fn go_map(members: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_map(&mut out, members);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(value) => _ = write!(out, "{value}"),
        Value::Number(number) => out.push_str(&go_number(number)),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => write_map(out, members),
    }
}

fn write_map(out: &mut String, members: &Map<String, Value>) {
    out.push_str("map[");
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(name);
        out.push(':');
        write_value(out, value);
    }
    out.push(']');
}

/// Returns the Go type of a decoded value, in the form of `%T`.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns the JSON type of a value, in the words of Go's decoder.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Encodes bytes in base64 as Go does: with padding, without line breaks.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes base64 like Go, that is, ignores line breaks and spare bits.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose =
        GeneralPurpose::new(&ALPHABET, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));
    let breaks: &[char] = &['\r', '\n'];
    LENIENT.decode(text.replace(breaks, "")).ok()
}
