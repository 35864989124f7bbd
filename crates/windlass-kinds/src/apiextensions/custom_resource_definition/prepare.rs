//! Defaults and status of a definition that is created or updated.

use serde_json::{Value, json};

use super::{list, storage_version, text};

/// Sets the status of a new definition.
pub(crate) fn prepare_create(definition: &mut Value) {
    let stored: Vec<&str> = storage_version(definition).into_iter().collect();
    definition["status"] = json!({
        "conditions": null,
        "acceptedNames": { "plural": "", "kind": "" },
        "storedVersions": if stored.is_empty() { Value::Null } else { json!(stored) },
    });
}

/// Adds the storage version of an updated definition to the stored versions. Stored versions are never
/// removed.
pub(crate) fn prepare_update(definition: &mut Value, old: &Value) {
    definition["status"] = old["status"].clone();
    let Some(version) = storage_version(definition).map(str::to_owned) else { return };
    if !list(&definition["status"], "storedVersions").iter().any(|stored| *stored == *version) {
        match definition["status"]["storedVersions"].as_array_mut() {
            Some(stored) => stored.push(json!(version)),
            None => definition["status"]["storedVersions"] = json!([version]),
        }
    }
}

/// Sets the names that follow from the kind, and the conversion `None`.
pub(crate) fn default(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({ "strategy": "None" }));
    }
    let Some(names) = spec.get_mut("names").filter(|names| names.is_object()) else { return };
    let kind = text(names, &["kind"]).to_owned();
    if kind.is_empty() {
        return;
    }
    if text(names, &["singular"]).is_empty() {
        names["singular"] = json!(kind.to_lowercase());
    }
    if text(names, &["listKind"]).is_empty() {
        names["listKind"] = json!(format!("{kind}List"));
    }
}
