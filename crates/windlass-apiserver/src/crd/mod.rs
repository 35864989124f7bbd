//! CustomResourceDefinitions: validation, names and conditions.
//!
//! All functions take definitions as JSON; no function reads or stores objects.

mod approval;
mod conditions;
mod formats;
mod names;
mod prepare;
mod validate;

pub(crate) use conditions::{condition_is_true, set_condition};
pub(crate) use formats::unknown_formats;
pub(crate) use names::{Names, accept};
pub(crate) use prepare::{default, prepare_create, prepare_update};
pub(crate) use validate::{validate_create, validate_update};

use serde_json::Value;

/// The finalizer that holds a definition until all instances are gone. The finalizer is set when the deletion
/// begins.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Returns the text at a path of field names; the empty string for a missing text.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter().try_fold(value, |value, field| value.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the elements of the list in a field.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the texts of the list in a field.
pub(crate) fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    list(value, field).iter().filter_map(Value::as_str).collect()
}

/// Returns the name of the storage version.
pub(crate) fn storage_version(definition: &Value) -> Option<&str> {
    let versions = list(&definition["spec"], "versions");
    versions.iter().find(|version| version["storage"] == true).map(|version| text(version, &["name"]))
}

/// Returns whether objects of the definition are served. An established definition stays established.
pub(crate) fn is_established(definition: &Value) -> bool {
    condition_is_true(definition, "Established")
}

#[cfg(test)]
mod tests;
