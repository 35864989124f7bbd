//! The fields of `metadata` that the server owns.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_runtime::ObjectKey;

use super::status::{StatusResult, bad_request};
use windlass_runtime::env::Env;

/// The alphabet of generated names: no vowels, and no characters that look alike.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The longest name that is generated.
const LONGEST_GENERATED: usize = 63;

/// Returns a field of `metadata` as text; empty for a missing field.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(super) fn key_of(object: &Value) -> ObjectKey {
    ObjectKey::new(object["metadata"]["namespace"].as_str(), text(object, "name"))
}

pub(super) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the uids of the owners.
pub(super) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().filter_map(|owner| owner["uid"].as_str())
}

/// Returns `metadata`. Adds missing metadata.
///
/// # Errors
/// The object, or `metadata`, is not a JSON object.
pub(super) fn of_mut(object: &mut Value) -> StatusResult<&mut Map<String, Value>> {
    let object = object.as_object_mut().ok_or_else(|| bad_request("the object is no JSON object"))?;
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    metadata.as_object_mut().ok_or_else(|| bad_request("metadata is no JSON object"))
}

/// Sets a field of `metadata`; null removes the field.
pub(super) fn set(object: &mut Value, field: &str, value: impl Into<Value>) -> StatusResult<()> {
    let (metadata, value) = (of_mut(object)?, value.into());
    if value.is_null() {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), value);
    }
    Ok(())
}

/// Sets the fields that a new object gets from the server.
pub(super) fn begin(object: &mut Value, env: &Env) -> StatusResult<()> {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
        set(object, field, Value::Null)?;
    }
    set(object, "uid", env.uuid())?;
    set(object, "creationTimestamp", timestamp(env.now()))?;
    set(object, "generation", first_generation(object))
}

/// Sets the fields that the server assigns, if an object that the test inserts lacks the fields.
pub(super) fn complete(object: &mut Value, env: &Env) -> StatusResult<()> {
    set(object, "managedFields", Value::Null)?;
    if text(object, "uid").is_empty() {
        set(object, "uid", env.uuid())?;
    }
    if text(object, "creationTimestamp").is_empty() {
        set(object, "creationTimestamp", timestamp(env.now()))?;
    }
    if object["metadata"]["generation"].is_null() {
        set(object, "generation", first_generation(object))?;
    }
    Ok(())
}

/// Copies the fields that clients cannot change from the old object.
pub(super) fn keep(new: &mut Value, old: &Value) -> StatusResult<()> {
    const KEPT: [&str; 8] = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    for field in KEPT {
        set(new, field, old["metadata"][field].clone())?;
    }
    for field in ["selfLink", "managedFields"] {
        set(new, field, Value::Null)?;
    }
    Ok(())
}

/// Returns the generation of a new object: 1 for an object with a `spec`, else none.
fn first_generation(object: &Value) -> Value {
    if object["spec"].is_null() { Value::Null } else { json!(1) }
}

/// Increments the generation of an object with a generation.
pub(super) fn next_generation(object: &mut Value) -> StatusResult<()> {
    match object["metadata"]["generation"].as_i64() {
        Some(generation) => set(object, "generation", generation + 1),
        None => Ok(()),
    }
}

/// Marks an object as being deleted.
pub(super) fn mark_deleted(object: &mut Value, now: Timestamp) -> StatusResult<()> {
    set(object, "deletionTimestamp", timestamp(now))?;
    set(object, "deletionGracePeriodSeconds", 0)?;
    next_generation(object)
}

/// Generates a name that begins with `prefix`.
pub(super) fn generated_name(prefix: &str, env: &Env) -> String {
    let mut name: String = prefix.chars().take(LONGEST_GENERATED - 5).collect();
    name.extend((0..5).map(|_| char::from(SUFFIX[(env.random() % SUFFIX.len() as u64) as usize])));
    name
}

/// Formats a time as the API does, in whole seconds.
fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
