//! Validation of custom resources: the schema, and the replicas in the scale.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cel::{Violation, ViolationKind};
use windlass_kinds::Subresource;
use windlass_schema::{FieldError, FieldErrorKind, go_quote, go_type, go_value};

use crate::meta;
use crate::resource::{Resource, ScalePaths};
use crate::wire::names;

/// Validates a custom resource, except for the metadata. Built-in kinds pass. Violations of rules that an update leaves
/// as they were become warnings.
pub(super) fn validate(
    resource: &Resource,
    subresource: &Subresource,
    object: &Value,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Vec<FieldError> {
    let Some(custom) = &resource.custom else { return Vec::new() };
    let of_status = *subresource == Subresource::Status;
    let mut errors = envelope(resource, object);
    let schema = resource.schema.get();
    if !errors.is_empty() {
        errors.extend(windlass_schema::validate_structure(schema, object));
        return errors;
    }
    errors.extend(match old {
        None => windlass_schema::validate(schema, object),
        Some(old) if of_status => windlass_schema::validate_status(schema, object, old),
        Some(old) => windlass_schema::validate_update(schema, object, old),
    });
    errors.extend(rules(resource, object, old, &errors, warnings));
    if let Some(scale) = &custom.scale {
        errors.extend(numbers(scale, object, of_status));
    }
    errors
}

/// Evaluates the validation rules of the schema, unless the object has errors that make the rules meaningless.
fn rules(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    errors: &[FieldError],
    warnings: &mut Vec<String>,
) -> Vec<FieldError> {
    use FieldErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    let Some(rules) = resource.custom.as_ref().and_then(|custom| custom.rules.get()) else {
        return Vec::new();
    };
    let blocks =
        |error: &FieldError| matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid);
    if errors.iter().any(blocks) {
        let detail = "some validation rules were not checked because the object was invalid; \
            correct the existing errors to complete validation";
        return vec![FieldError::invalid("<nil>", Value::Null, detail)];
    }
    let found = rules.validate(object, old);
    warnings.extend(found.unchanged.into_iter().map(|violation| refused(violation).to_string()));
    found.errors.into_iter().map(refused).collect()
}

/// Returns the error of a rule that does not hold.
fn refused(violation: Violation) -> FieldError {
    let Violation { kind, path, value, detail } = violation;
    let path = if path.is_empty() { "<nil>".to_owned() } else { path };
    match kind {
        ViolationKind::Forbidden => FieldError::forbidden(path, detail),
        ViolationKind::Required => FieldError::required(path, detail),
        ViolationKind::Duplicate => FieldError::duplicate(path, value),
        ViolationKind::Invalid => {
            let mut error = FieldError::invalid(path, Value::Null, detail);
            error.bad_value = value;
            error
        }
    }
}

/// Checks the kind and the version of a custom resource. If the kind or the version is wrong, other errors do
/// not count.
pub(super) fn envelope(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let wanted = [("kind", resource.kind.as_str()), ("apiVersion", resource.api_version())];
    let check = |(field, wanted): (&str, &str)| {
        let found = object.get(field).and_then(Value::as_str).unwrap_or_default();
        (found != wanted).then(|| FieldError::invalid(field, found, format!("must be {wanted}")))
    };
    if resource.is_custom() { wanted.into_iter().filter_map(check).collect() } else { Vec::new() }
}

/// Warns about new finalizers of a custom resource without a domain.
pub(super) fn warnings(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    if !resource.is_custom() {
        return Vec::new();
    }
    let mut added: BTreeSet<&str> = meta::finalizers(object).collect();
    for known in old.into_iter().flat_map(meta::finalizers) {
        added.remove(known);
    }
    let mut warnings = Vec::new();
    for finalizer in added {
        let mut warn = |text: &str| {
            warnings.push(format!("metadata.finalizers: {}: {text}", go_quote(finalizer)));
        };
        names::label_key(finalizer).iter().for_each(|problem| warn(problem));
        if finalizer.contains('/') || STANDARD.contains(&finalizer) {
            continue;
        }
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        warn(&format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    warnings
}

/// Checks the fields that the scale subresource shows: replicas are integers and not negative, the selector is a text.
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
        Ok(Some(number)) if number > i64::from(i32::MAX) => {
            let why = format!("should be less than or equal to {}", i32::MAX);
            errors.push(FieldError::invalid(path.as_str(), number, why));
        }
        Ok(_) => {}
    }
    if let Some(path) = scale.label_selector.as_ref().filter(|_| of_status)
        && let Err(why) = check_text(object, path)
    {
        errors.push(FieldError::invalid(path.as_str(), "", format!("{path} accessor error: {why}")));
    }
    errors
}

fn integer_at(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match value_at(object, path)? {
        None => Ok(None),
        Some(Value::Number(number)) if number.is_i64() => Ok(number.as_i64()),
        Some(other) => Err(unexpected(other, "int64")),
    }
}

fn check_text(object: &Value, path: &str) -> Result<(), String> {
    match value_at(object, path)? {
        None | Some(Value::String(_)) => Ok(()),
        Some(other) => Err(unexpected(other, "string")),
    }
}

/// Returns the value at a path, or why there can be none.
fn value_at<'o>(object: &'o Value, path: &str) -> Result<Option<&'o Value>, String> {
    let mut value = object;
    for segment in path.split('.').filter(|segment| !segment.is_empty()) {
        if value.is_null() {
            return Ok(None);
        }
        let fields = value.as_object().ok_or_else(|| unexpected(value, "map[string]interface{}"))?;
        let Some(found) = fields.get(segment) else { return Ok(None) };
        value = found;
    }
    Ok(Some(value))
}

fn unexpected(value: &Value, expected: &str) -> String {
    format!("{} is of the type {}, expected {expected}", go_value(value), go_type(value))
}
