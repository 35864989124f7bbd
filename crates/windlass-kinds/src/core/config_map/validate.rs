//! Validation and warnings.

use serde_json::Value;
use windlass_schema::{ErrorList, FieldError};

use super::{ConfigMaps, SIZE_LIMIT, decoded_length, validate_immutable, validate_key};
use crate::json::map_at;
use crate::kind::{Validate, WriteContext};

impl Validate for ConfigMaps {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate_config_map(object)
    }

    fn validate_update(&self, _cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = validate_immutable(object, old, &["data", "binaryData"]);
        errors.extend(validate_config_map(object));
        errors
    }
}

fn validate_config_map(object: &Value) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
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
    errors.into_vec()
}
