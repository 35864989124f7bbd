//! Patches of objects, without schemas.

use json_patch::{AddOperation, PatchOperation};
use serde_json::{Map, Value};

use super::{
    request::PatchFormat,
    status::{StatusResult, bad_request, unprocessable},
};

/// The key fields of list items, in a strategic merge patch and in server-side apply. The real server reads
/// the key fields from the schema.
const LIST_KEYS: [&str; 5] = ["name", "type", "uid", "mountPath", "containerPort"];

/// How lists are patched.
#[derive(Clone, Copy)]
enum Lists {
    Replaced,
    MergedByKey,
}

/// Patches an object.
pub(super) fn patch(object: &mut Value, format: PatchFormat, body: &Value) -> StatusResult<()> {
    if format == PatchFormat::Json {
        return json_patch(object, body);
    }
    if !body.is_object() {
        return Err(bad_request("error decoding patch: it is no JSON object"));
    }
    if format == PatchFormat::Merge {
        merge(object, body, Lists::Replaced);
        return Ok(());
    }
    merge(object, body, Lists::MergedByKey);
    Ok(())
}

fn json_patch(object: &mut Value, body: &Value) -> StatusResult<()> {
    let rejected = || unprocessable("the server rejected our request due to an error in our request");
    let operations: Vec<PatchOperation> = serde_json::from_value(body.clone())
        .map_err(|_| bad_request("error decoding patch: no JSON patch"))?;
    for operation in operations {
        let operation = match operation {
            // As in the real server, a member that is absent is added.
            PatchOperation::Replace(replace) if object.pointer(replace.path.as_str()).is_none() => {
                PatchOperation::Add(AddOperation { path: replace.path, value: replace.value })
            }
            other => other,
        };
        json_patch::patch(object, &[operation]).map_err(|_| rejected())?;
    }
    Ok(())
}

fn merge(target: &mut Value, patch: &Value, lists: Lists) {
    match patch {
        Value::Object(members) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            let Some(fields) = target.as_object_mut() else { return };
            for (name, value) in members.iter().filter(|(name, _)| *name != "$patch") {
                if value.is_null() {
                    fields.remove(name);
                } else {
                    merge(fields.entry(name.clone()).or_insert(Value::Null), value, lists);
                }
            }
        }
        Value::Array(items) if matches!(lists, Lists::MergedByKey) => merge_list(target, items),
        other => *target = other.clone(),
    }
}

fn merge_list(target: &mut Value, patch: &[Value]) {
    let replaces = patch.iter().any(|item| item["$patch"] == "replace");
    let current = target.as_array().filter(|_| !replaces).cloned().unwrap_or_default();
    let Some(key) = list_key(current.iter().chain(patch)).filter(|_| !replaces) else {
        *target = patch.iter().filter(|item| item["$patch"].is_null()).cloned().collect();
        return;
    };
    let mut merged = current;
    for item in patch {
        let place = merged.iter().position(|other| other[key] == item[key]);
        match (place, item["$patch"] == "delete") {
            (Some(place), true) => drop(merged.remove(place)),
            (None, true) => {}
            (Some(place), false) => merge(&mut merged[place], item, Lists::MergedByKey),
            (None, false) => {
                let mut added = Value::Null;
                merge(&mut added, item, Lists::MergedByKey);
                merged.push(added);
            }
        }
    }
    *target = Value::Array(merged);
}

/// Returns the first of the list keys that all items have.
pub(super) fn list_key<'a>(items: impl Iterator<Item = &'a Value> + Clone) -> Option<&'static str> {
    LIST_KEYS.into_iter().find(|key| {
        let mut items = items.clone().peekable();
        items.peek().is_some() && items.all(|item| item.get(key).is_some())
    })
}
