//! Config maps, and the common code of config maps and secrets.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::strategy::fields::map_at;
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::names;

/// The limit of the sum of all values, in bytes.
pub(super) const SIZE_LIMIT: usize = 1024 * 1024;

pub(super) struct ConfigMaps;

impl Strategy for ConfigMaps {
    fn facts(&self) -> &'static Facts {
        &Facts::DATA
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate_config_map(object)
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = validate_immutable(object, old, &["data", "binaryData"]);
        errors.extend(validate_config_map(object));
        errors
    }
}

fn validate_config_map(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (data, binary) = (map_at(object, "/data"), map_at(object, "/binaryData"));
    let mut size = 0;
    for (key, value) in data.into_iter().flatten() {
        errors.extend(validate_key("data", key));
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(format!("data[{key}]"), key.as_str(), detail));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in binary.into_iter().flatten() {
        errors.extend(validate_key("binaryData", key));
        size += decoded_length(value);
    }
    if size > SIZE_LIMIT {
        errors.push(FieldError::too_long("[]", SIZE_LIMIT));
    }
    errors
}

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
