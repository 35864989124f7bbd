//! Removes and extracts fields.

use serde_json::Value;

use super::field_set::FieldSet;
use crate::graph::NodeRef;

/// Returns the value without the given fields and elements.
#[expect(unused_variables, reason = "the body follows")]
pub fn remove(schema: NodeRef<'_>, value: &Value, fields: &FieldSet) -> Value {
    value.clone()
}

/// Returns only the given fields and elements of a value. With `keys`, list elements keep their key fields.
#[expect(unused_variables, reason = "the body follows")]
pub fn extract(schema: NodeRef<'_>, value: &Value, fields: &FieldSet, keys: bool) -> Value {
    value.clone()
}
