//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::PriorityClasses;
use crate::checks::enumerated;
use crate::json::{int_at, text, text_at};
use crate::kind::{Validate, WriteContext};

impl Validate for PriorityClasses {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let name = text_at(object, "/metadata/name");
        let value = int_at(object, "/value").unwrap_or_default();
        if name.starts_with("system-") {
            if !SYSTEM_CLASSES.contains(&(name, value)) {
                let detail = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
                );
                errors.push(FieldError::forbidden("metadata.name", detail));
            }
        } else if value > LARGEST_USER_PRIORITY {
            let detail =
                format!("maximum allowed value of a user defined priority is {LARGEST_USER_PRIORITY}");
            errors.push(FieldError::forbidden("value", detail));
        }
        let known = ["PreemptLowerPriority", "Never"];
        errors.extend(enumerated("preemptionPolicy", text(object, "preemptionPolicy"), &known));
        errors
    }

    fn validate_update(&self, _cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let value = |object: &Value| int_at(object, "/value").unwrap_or_default();
        if value(object) != value(old) {
            errors.push(FieldError::forbidden("value", "may not be changed in an update."));
        }
        if object.get("preemptionPolicy") != old.get("preemptionPolicy") {
            let shown = object.get("preemptionPolicy").cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid("preemptionPolicy", shown, "field is immutable"));
        }
        errors
    }
}

const LARGEST_USER_PRIORITY: i64 = 1_000_000_000;

/// The classes that the server creates when it starts.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
