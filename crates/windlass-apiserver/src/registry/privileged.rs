//! Privileged containers, on a server that does not allow them.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::resource::Resource;

/// Returns an error for each privileged container of a pod or of a template of pods.
pub(super) fn errors(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let Some(path) = spec_path(&resource.storage.group, &resource.storage.resource) else {
        return Vec::new();
    };
    let spec = path.iter().fold(object, |value, field| &value[*field]);
    let mut errors = Vec::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for (index, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            if container["securityContext"]["privileged"] == true {
                let field = format!("{}.{list}[{index}].securityContext.privileged", path.join("."));
                errors.push(FieldError::forbidden(field, "disallowed by cluster policy"));
            }
        }
    }
    errors
}

/// Returns the path to the spec of pods in objects of a resource.
fn spec_path(group: &str, plural: &str) -> Option<&'static [&'static str]> {
    Some(match (group, plural) {
        ("", "pods") => &["spec"],
        ("", "podtemplates") => &["template", "spec"],
        ("", "replicationcontrollers")
        | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
        | ("batch", "jobs") => &["spec", "template", "spec"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    })
}
