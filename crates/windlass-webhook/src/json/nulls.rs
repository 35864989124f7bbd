//! Nulls that a Rust type writes for absent members.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Removes the nulls that `K` writes for absent members from the JSON of an object of type `K`, except nulls that
/// `source` has at the same path.
///
/// A field that is an `Option` without `skip_serializing_if` is written as null. The API server would store the null: a
/// difference to the manifest of the user, without a field manager. Go's `omitempty` writes no null.
///
/// A null stays if the member would not be null without the null, as in a field of any JSON, or in a field with another
/// default than `None`.
pub(crate) fn remove_new_nulls<K: Serialize + DeserializeOwned>(source: &Value, object: &mut Value) {
    if !has_null(object) {
        return;
    }
    let mut without = object.clone();
    if !remove(&mut without, Some(source), Some(object)) {
        return;
    }
    if let Ok(written) = K::deserialize(&without).and_then(|object| serde_json::to_value(&object)) {
        remove(object, Some(source), Some(&written));
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

/// Removes the null members of `object` that are null in `written` and not in `source`. Returns whether a member was removed.
fn remove(object: &mut Value, source: Option<&Value>, written: Option<&Value>) -> bool {
    let is_null = |value: Option<&Value>| value.is_some_and(Value::is_null);
    let mut removed = false;
    match object {
        Value::Object(members) => members.retain(|name, value| {
            let (source, written) =
                (source.and_then(|source| source.get(name)), written.and_then(|written| written.get(name)));
            let is_new = value.is_null() && is_null(written) && !is_null(source);
            removed |= is_new || remove(value, source, written);
            !is_new
        }),
        Value::Array(elements) => {
            for (at, element) in elements.iter_mut().enumerate() {
                let source = source.and_then(|source| source.get(at));
                removed |= remove(element, source, written.and_then(|written| written.get(at)));
            }
        }
        _ => {}
    }
    removed
}
