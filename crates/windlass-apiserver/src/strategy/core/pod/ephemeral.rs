//! Writes of `ephemeralcontainers`.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::strategy::checks::invalid_names;
use crate::strategy::fields::{list_at, text};
use crate::wire::names;

const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// Fields of containers that ephemeral containers do not have.
const REFUSED: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Validates a write of `ephemeralcontainers`. Ephemeral containers may be added, but neither changed nor removed.
pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let path = "spec.ephemeralContainers";
    let mut errors = Vec::new();
    let new = list_at(object, "/spec/ephemeralContainers");
    for before in list_at(old, "/spec/ephemeralContainers") {
        let name = text(before, "name");
        match new.iter().find(|container| text(container, "name") == name) {
            None => {
                let detail = format!(
                    "existing ephemeral containers {} may not be removed\n",
                    windlass_schema::go_quote(name)
                );
                errors.push(FieldError::forbidden(path, detail));
            }
            Some(found) if found != before => {
                let detail = format!(
                    "existing ephemeral containers {} may not be changed\n",
                    windlass_schema::go_quote(name)
                );
                errors.push(FieldError::forbidden(path, detail));
            }
            Some(_) => {}
        }
    }
    errors.extend(validate_containers(&object["spec"]));
    errors
}

fn validate_containers(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let containers = list_at(spec, "/ephemeralContainers");
    let others: Vec<&str> = ["/containers", "/initContainers"]
        .into_iter()
        .flat_map(|list| list_at(spec, list))
        .map(|container| text(container, "name"))
        .collect();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("spec.ephemeralContainers[{index}]");
        let name = text(container, "name");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else {
            errors.extend(invalid_names(&format!("{path}.name"), name, names::dns_1123_label(name)));
        }
        if text(container, "image").is_empty() {
            errors.push(FieldError::required(format!("{path}.image"), ""));
        }
        if others.contains(&name) || containers[..index].iter().any(|before| text(before, "name") == name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(&target) {
            errors.push(FieldError::not_found(format!("{path}.targetContainerName"), target));
        }
        for field in REFUSED {
            if container.get(field).is_some_and(|value| !is_empty(value)) {
                errors.push(FieldError::forbidden(format!("{path}.{field}"), NOT_EPHEMERAL));
            }
        }
        for (index, mount) in list_at(container, "/volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, field).is_empty() {
                    let field = format!("{path}.volumeMounts[{index}].{field}");
                    errors.push(FieldError::forbidden(field, NOT_EPHEMERAL));
                }
            }
        }
    }
    errors
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
