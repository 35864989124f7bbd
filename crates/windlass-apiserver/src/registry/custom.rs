//! Validation of custom resources: their schema, and the replicas that their scale shows.

use serde_json::Value;
use windlass_schema::{FieldError, go_type, go_value};

use crate::resource::{Resource, ScalePaths};

/// Validates a custom resource, except for its metadata. Built-in kinds pass.
pub(super) fn validate(
    resource: &Resource,
    subresource: &str,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let Some(custom) = &resource.custom else { return Vec::new() };
    let of_status = subresource == "status";
    let mut errors: Vec<FieldError> = envelope(resource, object).into_iter().collect();
    let schema = resource.schema.get();
    errors.extend(match old {
        None => windlass_schema::validate(schema, object),
        Some(old) if of_status => windlass_schema::validate_status(schema, object, old),
        Some(old) => windlass_schema::validate_update(schema, object, old),
    });
    if let Some(scale) = &custom.scale {
        errors.extend(numbers(scale, object, of_status));
    }
    errors
}

fn envelope(resource: &Resource, object: &Value) -> Option<FieldError> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    (kind != resource.kind).then(|| FieldError::invalid("kind", kind, format!("must be {}", resource.kind)))
}

/// Checks that the replicas that the scale subresource shows are integers and not negative.
fn numbers(scale: &ScalePaths, object: &Value, of_status: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = if of_status { &scale.status_replicas } else { &scale.spec_replicas };
    match integer_at(object, path) {
        Err(why) => {
            errors.push(FieldError::invalid(path.as_str(), 0, format!("{path} accessor error: {why}")));
        }
        Ok(Some(number)) if number < 0 => {
            errors.push(FieldError::invalid(path.as_str(), number, "should be a non-negative integer"));
        }
        Ok(_) => {}
    }
    errors
}

fn integer_at(object: &Value, path: &str) -> Result<Option<i64>, String> {
    let mut value = object;
    for segment in path.split('.').filter(|segment| !segment.is_empty()) {
        let Some(fields) = value.as_object() else {
            return Err(format!(
                "{} is of the type {}, expected map[string]interface{{}}",
                go_value(value),
                go_type(value)
            ));
        };
        let Some(found) = fields.get(segment) else { return Ok(None) };
        value = found;
    }
    match value {
        Value::Number(number) if number.is_i64() => Ok(number.as_i64()),
        other => Err(format!("{} is of the type {}, expected int64", go_value(other), go_type(other))),
    }
}
