//! The subresource `scale`, of every object with `spec.replicas`.

use serde_json::{Value, json};

use super::metadata;

/// Returns the scale of an object.
pub(super) fn of(object: &Value) -> Value {
    let mut meta = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            meta[field] = value.clone();
        }
    }
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": meta,
        "spec": { "replicas": object["spec"]["replicas"].as_i64().unwrap_or(0) },
        "status": { "replicas": object["status"]["replicas"].as_i64().unwrap_or(0) },
    })
}

/// Returns the object with the replicas of a scale. A resource version in the scale is a condition, as in the object.
pub(super) fn applied(object: &Value, scale: &Value) -> Value {
    let mut scaled = object.clone();
    scaled["spec"]["replicas"] = scale["spec"]["replicas"].clone();
    let version = metadata::text(scale, "resourceVersion");
    if !version.is_empty() {
        scaled["metadata"]["resourceVersion"] = version.into();
    }
    scaled
}
