//! Access to the fields of an object. No function panics, regardless of the object.

use serde_json::{Map, Value};
use windlass_store::object_meta as meta;

/// Sets a field if it is absent or null.
pub(super) fn default(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let slot = fields.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value.into();
    }
}

/// Sets a field if it is absent, null or empty.
pub(super) fn default_text(fields: &mut Map<String, Value>, name: &str, value: &str) {
    let slot = fields.entry(name).or_insert(Value::Null);
    if slot.is_null() || slot == "" {
        *slot = value.into();
    }
}

/// Sets a field if it is absent, null or zero.
pub(super) fn default_number(fields: &mut Map<String, Value>, name: &str, value: i64) {
    let slot = fields.entry(name).or_insert(Value::Null);
    if slot.is_null() || *slot == 0 {
        *slot = value.into();
    }
}

/// Returns the object under a field of a value.
pub(super) fn object_mut<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    value.get_mut(field).and_then(Value::as_object_mut)
}

/// Returns the object under a field of an object.
pub(super) fn entry_mut<'a>(
    fields: &'a mut Map<String, Value>,
    field: &str,
) -> Option<&'a mut Map<String, Value>> {
    fields.get_mut(field).and_then(Value::as_object_mut)
}

/// Returns the objects of the list under a field.
pub(super) fn items_mut<'a>(
    fields: &'a mut Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    fields.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Returns the `spec` of an object. Inserts a missing `spec`.
pub(super) fn spec_mut(object: &mut Value) -> &mut Map<String, Value> {
    meta::entry_object(object, "spec")
}

/// Returns the text at a pointer, or an empty one.
pub(super) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    meta::at(value, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the integer at a pointer.
pub(super) fn int_at(value: &Value, pointer: &str) -> Option<i64> {
    meta::at(value, pointer).and_then(Value::as_i64)
}

/// Returns the list at a pointer, or an empty one.
pub(super) fn list_at<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    meta::at(value, pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the map at a pointer.
pub(super) fn map_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    meta::at(value, pointer).and_then(Value::as_object)
}

/// Returns the text of a field, or an empty one.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
