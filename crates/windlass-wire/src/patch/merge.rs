//! Merge patch.

use serde_json::{Map, Value};

/// Applies a merge patch: members of objects are merged, a `null` removes the member, and any other value replaces.
///
/// Unlike RFC 7386, and like kube-apiserver, `null`s are also removed from objects inside of arrays that are new.
///
/// ```
/// use serde_json::json;
///
/// let mut object = json!({"a": {"b": 1, "c": 2}});
/// windlass_wire::patch::merge_patch(&mut object, &json!({"a": {"b": null, "d": 3}}));
/// assert_eq!(object, json!({"a": {"c": 2, "d": 3}}));
/// ```
pub fn merge_patch(document: &mut Value, patch: &Value) {
    match (document, patch) {
        (Value::Object(members), Value::Object(patch)) => merge(members, patch),
        (document @ Value::Object(_), patch) => *document = patch.clone(),
        (document, patch) => *document = without_nulls(patch),
    }
}

fn merge(members: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else if let Some(current) = members.get_mut(name) {
            merge_patch(current, value);
        } else {
            members.insert(name.clone(), without_nulls(value));
        }
    }
}

/// Copies a value without the members that are `null`. Elements of arrays stay, so that indexes stay valid.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
