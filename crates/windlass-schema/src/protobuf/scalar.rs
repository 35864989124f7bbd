//! Messages that are scalars in JSON.

use serde_json::{Number, Value};

use super::wire::{Field, Fields};
use super::{DecodeError, Result};
use crate::timestamp::{LAST_SECOND, YEAR_1, rfc3339};

pub(super) fn double(bits: u64) -> Result<Value> {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    let value = f64::from_bits(bits);
    if value.fract() == 0.0 && value.abs() < WHOLE {
        return Ok(Value::from(value as i64));
    }
    let number = Number::from_f64(value);
    number.map(Value::Number).ok_or_else(|| DecodeError::new(format!("json: unsupported value: {value}")))
}

pub(super) fn quantity(bytes: &[u8]) -> Result<Value> {
    let mut text = "0";
    for field in Fields::new(bytes) {
        let field = field?;
        if field.number == 1 {
            text = field.text()?;
        }
    }
    Ok(text.into())
}

pub(super) fn int_or_string(bytes: &[u8]) -> Result<Value> {
    let mut is_text = false;
    let mut number = 0;
    let mut text = "";
    for field in Fields::new(bytes) {
        let field: Field<'_> = field?;
        match field.number {
            1 => is_text = field.varint()? == 1,
            2 => number = field.varint()? as i64,
            3 => text = field.text()?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

/// Decodes a message that wraps JSON.
pub(super) fn raw(bytes: &[u8]) -> Result<Value> {
    let mut raw: &[u8] = &[];
    for field in Fields::new(bytes) {
        let field = field?;
        if field.number == 1 {
            raw = field.bytes()?;
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw)
        .map_err(|error| DecodeError::new(format!("invalid JSON in a message: {error}")))
}

/// Decodes a timestamp; an empty message and Go's absent time are null.
pub(super) fn time(bytes: &[u8], micros: bool) -> Result<Value> {
    let (mut seconds, mut nanos) = (0_i64, 0_i64);
    for field in Fields::new(bytes) {
        let field = field?;
        match field.number {
            1 => seconds = field.varint()? as i64,
            2 => nanos = field.varint()? as i64,
            _ => {}
        }
    }
    if bytes.is_empty() || (seconds, nanos) == (YEAR_1, 0) {
        return Ok(Value::Null);
    }
    let in_range = (YEAR_1..=LAST_SECOND).contains(&seconds) && (0..1_000_000_000).contains(&nanos);
    if !in_range {
        return Err(DecodeError::new("timestamp: year outside of range [1,9999]"));
    }
    Ok(rfc3339(seconds, micros.then_some(nanos / 1000)).into())
}
