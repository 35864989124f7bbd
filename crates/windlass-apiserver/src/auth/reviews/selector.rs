//! The selectors of access reviews.

use serde_json::Value;
use windlass_schema::FieldError;

use super::text;
use crate::wire::names;
use crate::wire::{FieldSelector, LabelSelector};

/// Validates the selectors of the resource that an access review is about.
pub(super) fn problems(resource: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["fieldSelector", "labelSelector"] {
        let selector = &resource[name];
        if !selector.is_object() {
            continue;
        }
        let path = format!("spec.resourceAttributes.{name}");
        errors.extend(wrong_outline(&path, selector));
        for (index, requirement) in selector["requirements"].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.requirements[{index}]");
            if name == "fieldSelector" {
                errors.extend(missing_key(&path, requirement));
                errors.extend(wrong_values(&path, requirement));
            } else {
                errors.extend(wrong_values(&path, requirement));
                errors.extend(wrong_labels(&path, requirement));
            }
        }
    }
    errors
}

/// Returns the error about selectors that are ignored because the selectors cannot be parsed.
pub(super) fn evaluation_error(resource: &Value) -> Option<String> {
    let raw = |name: &str| resource[name]["rawSelector"].as_str().unwrap_or_default().to_owned();
    let ignored = [
        ("fieldSelector", FieldSelector::parse(&raw("fieldSelector")).is_err()),
        ("labelSelector", LabelSelector::parse(&raw("labelSelector")).is_err()),
    ];
    let ignored: Vec<_> = ignored
        .iter()
        .filter(|(_, is_ignored)| *is_ignored)
        .map(|(name, _)| format!("spec.resourceAttributes.{name} ignored due to parse error"))
        .collect();
    (!ignored.is_empty()).then(|| ignored.join("; "))
}

/// Checks that a selector is either text or requirements.
fn wrong_outline(path: &str, selector: &Value) -> Option<FieldError> {
    let raw = text(selector, "rawSelector");
    let has_requirements = selector["requirements"].as_array().is_some_and(|list| !list.is_empty());
    match (raw.is_empty(), has_requirements) {
        (false, true) => {
            let why = "may not specified at the same time as requirements";
            Some(FieldError::invalid(format!("{path}.rawSelector"), raw, why))
        }
        (true, false) => {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            Some(FieldError::required(format!("{path}.requirements"), why))
        }
        _ => None,
    }
}

fn missing_key(path: &str, requirement: &Value) -> Option<FieldError> {
    let is_missing = text(requirement, "key").is_empty();
    is_missing.then(|| FieldError::required(format!("{path}.key"), "must be specified"))
}

/// Checks that a requirement has the values that the operator needs. Unknown operators are accepted.
fn wrong_values(path: &str, requirement: &Value) -> Option<FieldError> {
    let field = format!("{path}.values");
    let has_values = requirement["values"].as_array().is_some_and(|values| !values.is_empty());
    match (text(requirement, "operator"), has_values) {
        ("In" | "NotIn", false) => {
            Some(FieldError::required(field, "must be specified when `operator` is 'In' or 'NotIn'"))
        }
        ("Exists" | "DoesNotExist", true) => Some(FieldError::forbidden(
            field,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        _ => None,
    }
}

fn wrong_labels(path: &str, requirement: &Value) -> Vec<FieldError> {
    let key = text(requirement, "key");
    let invalid = |field: String, value: &str, problems: Vec<String>| {
        let value = value.to_owned();
        problems.into_iter().map(move |problem| FieldError::invalid(field.clone(), value.clone(), problem))
    };
    let mut errors: Vec<_> = invalid(format!("{path}.key"), key, names::label_key(key)).collect();
    for (index, value) in requirement["values"].as_array().into_iter().flatten().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid(format!("{path}.values[{index}]"), value, names::label_value(value)));
    }
    errors
}
