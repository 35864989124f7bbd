//! Checks that many kinds share.

use serde_json::{Map, Value};
use windlass_schema::FieldError;

use crate::wire::names;

const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// What is wrong with labels.
pub(crate) fn validate_labels(labels: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        let value = value.as_str().unwrap_or_default();
        errors.extend(
            names::label_key(key).into_iter().map(|text| FieldError::invalid(path, key.as_str(), text)),
        );
        errors
            .extend(names::label_value(value).into_iter().map(|text| FieldError::invalid(path, value, text)));
    }
    errors
}

/// What is wrong with annotations.
pub(crate) fn validate_annotations(annotations: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations {
        size += key.len() + value.as_str().map_or(0, str::len);
        let complaints = names::label_key(&key.to_lowercase());
        errors.extend(complaints.into_iter().map(|text| FieldError::invalid(path, key.as_str(), text)));
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(path, ANNOTATIONS_LIMIT));
    }
    errors
}

/// Complaints of a name check as errors of a field.
pub(super) fn named(field: &str, value: &str, complaints: Vec<String>) -> impl Iterator<Item = FieldError> {
    complaints.into_iter().map(move |text| FieldError::invalid(field, value, text))
}

/// An error for a value outside an enumeration; none for an empty one.
pub(super) fn enumerated(field: &str, value: &str, known: &[&str]) -> Option<FieldError> {
    (!value.is_empty() && !known.contains(&value)).then(|| FieldError::not_supported(field, value, known))
}
