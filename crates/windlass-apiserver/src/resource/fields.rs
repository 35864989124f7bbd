//! The types of the fields of an object that was decoded.

use serde_json::Value;
use windlass_schema::json_type;

use super::Resource;

impl Resource {
    /// Checks the types of the fields. The error is in Go's words.
    pub(crate) fn check_fields(&self, object: &Value) -> Result<(), String> {
        if !self.is_custom() {
            let wrong = windlass_schema::decode_error(self.schema.get(), &self.kind, object);
            return wrong.map_or(Ok(()), Err);
        }
        // Custom resources are read in two steps: metadata by itself, the rest when it is validated.
        let Some(metadata) = object.get("metadata") else { return Ok(()) };
        let wrong = |found: &Value, field: &str, go_type: &str| {
            let found = json_type(found);
            Err(format!(
                "json: cannot unmarshal {found} into Go struct field ObjectMeta.{field} of type {go_type}"
            ))
        };
        if !metadata.is_object() && !metadata.is_null() {
            let found = json_type(metadata);
            return Err(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"));
        }
        for field in ["name", "generateName", "namespace", "uid", "resourceVersion"] {
            match metadata.get(field) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(found) => {
                    return wrong(found, field, if field == "uid" { "types.UID" } else { "string" });
                }
            }
        }
        for field in ["labels", "annotations"] {
            match metadata.get(field) {
                None | Some(Value::Null) => {}
                Some(Value::Object(entries)) => {
                    if let Some(found) = entries.values().find(|value| !value.is_string() && !value.is_null())
                    {
                        return wrong(found, field, "string");
                    }
                }
                Some(found) => return wrong(found, field, "map[string]string"),
            }
        }
        for (field, go_type) in [("finalizers", "[]string"), ("ownerReferences", "[]v1.OwnerReference")] {
            match metadata.get(field) {
                None | Some(Value::Null | Value::Array(_)) => {}
                Some(found) => return wrong(found, field, go_type),
            }
        }
        Ok(())
    }
}

/// Removes the metadata of a custom resource that has the wrong type. kube-apiserver does so with what a webhook returns.
pub(crate) fn drop_malformed_metadata(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|field, value| match field.as_str() {
        "name" | "generateName" | "namespace" | "uid" | "resourceVersion" => value.is_string(),
        "labels" | "annotations" => {
            let Some(entries) = value.as_object_mut() else { return false };
            entries.retain(|_, value| value.is_string());
            !entries.is_empty()
        }
        "finalizers" | "ownerReferences" | "managedFields" => value.is_array(),
        _ => true,
    });
}
