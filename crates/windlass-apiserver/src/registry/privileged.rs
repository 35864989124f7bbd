//! Privileged containers, on a server that does not allow them.

use serde_json::Value;
use windlass_schema::{ErrorList, FieldError};

use crate::meta;
use crate::resource::Resource;

/// Returns an error for each privileged container of a pod or of a template of pods.
pub(super) fn errors(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let Some(pointer) = resource.strategy.config.pod_spec else { return Vec::new() };
    let Some(spec) = meta::at(object, pointer) else { return Vec::new() };
    let path = pointer.trim_start_matches('/').replace('/', ".");
    let mut errors = ErrorList::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for (index, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            if container["securityContext"]["privileged"] == true {
                let field = format!("{path}.{list}[{index}].securityContext.privileged");
                errors.push(FieldError::forbidden(field, "disallowed by cluster policy"));
            }
        }
    }
    errors.into_vec()
}
