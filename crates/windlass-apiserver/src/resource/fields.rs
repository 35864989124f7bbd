//! The types of the fields of an object that was decoded.

use serde_json::Value;

use super::Resource;

impl Resource {
    /// Checks the types of the fields. The error is in Go's words.
    pub(crate) fn check_fields(&self, object: &Value) -> Result<(), String> {
        if !self.is_custom() {
            let wrong = windlass_schema::decode_error(self.schema.get(), &self.kind, object);
            return wrong.map_or(Ok(()), Err);
        }
        // Custom resources are decoded in two steps: the metadata first, the rest during validation.
        let Some(metadata) = object.get("metadata").filter(|metadata| !metadata.is_null()) else {
            return Ok(());
        };
        windlass_schema::metadata_error(metadata).map_or(Ok(()), Err)
    }
}

/// Removes metadata of the wrong type from a custom resource, like kube-apiserver for the output of a
/// webhook. Labels and annotations without a value become empty, and validation refuses entries of the wrong type.
pub(crate) fn drop_malformed_metadata(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|field, value| match field.as_str() {
        "name" | "generateName" | "namespace" | "uid" | "resourceVersion" => value.is_string(),
        "labels" | "annotations" => {
            if let Some(entries) = value.as_object_mut() {
                entries.values_mut().filter(|value| value.is_null()).for_each(|value| *value = "".into());
            }
            !value.is_null()
        }
        "finalizers" | "ownerReferences" | "managedFields" => value.is_array(),
        _ => true,
    });
}
