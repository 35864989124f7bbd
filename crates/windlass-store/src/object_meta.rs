//! Reads and writes the `metadata` of an object.

use serde_json::{Map, Value};

/// Returns a string in the metadata, or the empty string.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the name, or the empty string.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// Returns the namespace, or the empty string.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// Returns the uid, or the empty string.
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// Returns the resource version, or the empty string.
pub fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

/// Returns an integer in the metadata.
pub fn integer(object: &Value, field: &str) -> Option<i64> {
    object.get("metadata")?.get(field)?.as_i64()
}

/// Returns whether the object is terminating.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// Returns the labels.
pub fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("labels")?.as_object()
}

/// Returns the finalizers.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list =
        object.get("metadata").and_then(|metadata| metadata.get("finalizers")).and_then(Value::as_array);
    // To Go, null is an empty text.
    list.into_iter()
        .flatten()
        .filter_map(|finalizer| finalizer.as_str().or(finalizer.is_null().then_some("")))
}

/// Returns the metadata. Creates missing metadata.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    entry_object(object, "metadata")
}

/// Returns the object in `field`. Creates the object if the field is missing or has another type.
pub fn entry_object<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else { unreachable!("made an object above") };
    if !fields.get(field).is_some_and(Value::is_object) {
        fields.insert(field.to_owned(), Value::Object(Map::new()));
    }
    let Some(Value::Object(found)) = fields.get_mut(field) else { unreachable!("made an object above") };
    found
}

/// Returns the value at a JSON pointer, as [`Value::pointer`] does, but without a copy of each segment.
pub fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    pointer.split('/').skip(1).try_fold(value, |value, segment| match value {
        Value::Object(fields) => fields.get(segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Sets a metadata field; `None` removes the field.
pub fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let metadata = metadata_mut(object);
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// Sets `metadata.finalizers`; an empty list removes the field.
pub fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let value = (!finalizers.is_empty()).then(|| finalizers.iter().cloned().map(Value::String).collect());
    set(object, "finalizers", value);
}

/// Returns whether the object has an annotation, even an empty annotation.
pub fn has_annotation(object: &Value, key: &str) -> bool {
    at(object, "/metadata/annotations").and_then(Value::as_object).is_some_and(|all| all.contains_key(key))
}

/// Adds a missing finalizer.
pub fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = finalizers(object).map(str::to_owned).collect();
    if !finalizers.iter().any(|found| found == finalizer) {
        finalizers.push(finalizer.to_owned());
        set_finalizers(object, &finalizers);
    }
}

/// Copies a top-level field from `from`, or removes the field if `from` does not have the field.
pub fn copy_field(object: &mut Value, from: &Value, field: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// Copies a metadata field from `from`, or removes the field if `from` does not have the field.
pub fn copy(object: &mut Value, from: &Value, field: &str) {
    let value = from.get("metadata").and_then(|metadata| metadata.get(field)).cloned();
    set(object, field, value);
}

/// Returns the fields of an object. Any other value is replaced by an empty object.
pub fn fields_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match object {
        Value::Object(fields) => fields,
        _ => unreachable!("made an object above"),
    }
}

/// Removes empty maps, lists and strings from the metadata, as the encoding of Go types does.
pub fn drop_empty(object: &mut Value) {
    let metadata = metadata_mut(object);
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    });
}
