//! Validation of the bindings of admission policies.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;

use super::resources::{match_resources, mutating_operations};
use crate::field::{self, Errors, Field};
use crate::selector::label_selector;
use windlass_wire::names;

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

/// Validates a binding of a validating policy.
pub(super) fn validating(object: &Value) -> Vec<FieldError> {
    validate(object, |spec, errors| validate_actions(&spec.at("validationActions"), errors))
}

/// Validates a binding of a mutating policy.
pub(super) fn mutating(object: &Value) -> Vec<FieldError> {
    validate(object, |spec, errors| mutating_operations(&spec.at("matchResources"), errors))
}

fn validate(object: &Value, rest: impl Fn(&Field<'_>, &mut Errors)) -> Vec<FieldError> {
    field::validate("spec", object.get("spec").unwrap_or(&Value::Null), |spec, errors| {
        spec.at("policyName").require_check(names::dns_1123_subdomain, errors);
        validate_params(&spec.at("paramRef"), errors);
        match_resources(&spec.at("matchResources"), errors);
        rest(spec, errors);
    })
}

fn validate_params(reference: &Field<'_>, errors: &mut Errors) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    if !reference.is_set() {
        return;
    }
    let (name, selector) = (reference.at("name"), reference.at("selector"));
    let has_name = !name.text().is_empty();
    if has_name {
        name.check(|name| names::path_segment_name(name, false), errors);
        if selector.is_set() {
            errors.push(name.forbidden(EXCLUSIVE));
        }
    }
    if selector.is_set() {
        label_selector(&selector, errors);
        if has_name {
            errors.push(selector.forbidden(EXCLUSIVE));
        }
    } else if !has_name {
        errors.push(reference.required("one of name or selector must be specified"));
    }
    let action = reference.at("parameterNotFoundAction");
    if action.text().is_empty() {
        errors.push(action.required(""));
    } else {
        action.one_of(&["Deny", "Allow"], errors);
    }
}

fn validate_actions(actions: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        action.one_of(&ACTIONS, errors);
        if !seen.insert(action.text()) {
            errors.push(action.duplicate());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(actions.invalid(detail));
    }
    if seen.is_empty() {
        errors.push(actions.required(""));
    }
}
