//! Config maps, and the common code of config maps and secrets.

pub(super) mod table;
mod validate;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind =
    Kind { validate: &ConfigMaps, table: &table::TABLE, ..Kind::new(KindConfig::DATA) };

/// The limit of the sum of all values, in bytes.
pub(super) const SIZE_LIMIT: usize = 1024 * 1024;

pub(super) struct ConfigMaps;

pub(super) fn validate_key(path: &str, key: &str) -> impl Iterator<Item = FieldError> {
    let invalid = move |text| FieldError::invalid(format!("{path}[{key}]"), key, text);
    names::config_map_key(key).into_iter().map(invalid)
}

/// Validates that an immutable object does not change.
pub(super) fn validate_immutable(object: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    let is_immutable = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if !is_immutable(old) {
        return Vec::new();
    }
    let detail = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if !is_immutable(object) {
        errors.push(FieldError::forbidden("immutable", detail));
    }
    let changed = fields.iter().filter(|field| object.get(**field) != old.get(**field));
    errors.extend(changed.map(|field| FieldError::forbidden(*field, detail)));
    errors
}

/// Returns the number of bytes that a base64 text encodes.
pub(super) fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    (text.len() / 4 * 3).saturating_sub(text.bytes().rev().take_while(|byte| *byte == b'=').count())
}
