//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::{CLASS, Claims};
use crate::field::{self, Errors, Field};
use crate::json::text_at;
use crate::kind::{Validate, WriteContext};
use crate::pod_template::resources::validate_amount;
use crate::volume::claim::{claim_spec_warnings, class_annotation_warning, validate_claim_spec};

impl Validate for Claims {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], validate_claim_spec)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::validate("", object, |object, errors| validate_change(object, &object.with(old), errors))
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let warnings: Vec<String> = field::validate("", object, |claim, warnings| {
            warnings.extend(class_annotation_warning(claim));
            claim_spec_warnings(&claim.at("spec"), warnings);
        });
        warnings
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        field::validate("status", &object["status"], validate_status)
    }
}

const IMMUTABLE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";

/// The states of a claim's resize.
const RESIZES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

fn validate_change(object: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (spec, before) = (object.at("spec"), old.at("spec"));
    let class = |object: &Field<'_>| object.at_path("metadata/annotations").key(CLASS).text().to_owned();
    if class(object) != class(old) {
        let place = object.at("metadata").at("annotations").at(CLASS);
        errors.push(place.invalid_as(class(object), "field is immutable"));
    }
    let is_bound = object.at_path("status/phase").text() == "Bound";
    let mut fixed = spec.value().clone();
    let mut fixed_before = before.value().clone();
    if let (Some(new), Some(old)) = (fixed.as_object_mut(), fixed_before.as_object_mut()) {
        if text_at(before.value(), "/volumeName").is_empty() {
            new.remove("volumeName");
            old.remove("volumeName");
        }
        // A claim that was made before there was a default class may get one.
        if !old.contains_key("storageClassName") {
            new.remove("storageClassName");
        }
        if is_bound {
            for spec in [new, old] {
                spec.remove("volumeAttributesClassName");
                if let Some(requests) = spec.get_mut("resources").and_then(|all| all.get_mut("requests")) {
                    requests["storage"] = Value::Null;
                }
            }
        }
    }
    if fixed != fixed_before {
        errors.push(spec.forbidden(IMMUTABLE));
    }
    let size = spec.at_path("resources/requests/storage");
    let shrinks = size.quantity() < before.at_path("resources/requests/storage").quantity();
    if shrinks
        && size.quantity()
            <= object.at_path("status/capacity/storage").quantity().or_else(|| "0".parse().ok())
    {
        errors.push(size.forbidden("field can not be less than status.capacity"));
    }
    let mode = spec.at("volumeMode");
    if mode.value() != before.at("volumeMode").value() {
        errors.push(mode.at_path_of(&object.at("volumeMode")).invalid("field is immutable"));
    }
    let attributes = spec.at("volumeAttributesClassName");
    if attributes.value() != before.at("volumeAttributesClassName").value()
        && old.at_path("status/currentVolumeAttributesClassName").is_set()
        && attributes.text().is_empty()
    {
        let what = if attributes.is_set() { "empty string" } else { "nil" };
        let detail =
            format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
        errors.push(attributes.forbidden(detail));
    }
}

fn validate_status(status: &Field<'_>, errors: &mut Errors) {
    for (_, amount) in status.at("capacity").entries() {
        basic(&amount, errors);
    }
    let statuses = status.at("allocatedResourceStatuses");
    for (key, resize) in statuses.entries() {
        validate_key(key, &statuses, errors);
        if !RESIZES.contains(&resize.text()) {
            errors.push(statuses.unsupported_as(key, &RESIZES));
        }
    }
    let allocated = status.at("allocatedResources");
    for (key, amount) in allocated.entries() {
        if validate_key(key, &allocated, errors) && basic(&amount, errors) {
            validate_amount("storage", &amount, errors);
        }
    }
}

fn basic(amount: &Field<'_>, errors: &mut Errors) -> bool {
    let Some(quantity) = amount.quantity().filter(|quantity| quantity.signum() < 0) else { return true };
    let whole = i64::try_from(quantity.to_milli().div_euclid(1000)).unwrap_or(i64::MIN);
    errors.push(amount.invalid_as(whole, "must be a valid resource quantity"));
    false
}

fn validate_key(key: &str, list: &Field<'_>, errors: &mut Errors) -> bool {
    let problems = names::label_key(key);
    let is_valid = problems.is_empty();
    errors.extend(problems.into_iter().map(|problem| list.invalid_as(key, problem)));
    let is_native = !key.contains('/') || key.contains("kubernetes.io/");
    let is_known = !is_native || key == "storage";
    if is_valid && !is_known {
        errors.push(list.unsupported_text(key, &["storage"]));
    }
    is_valid && is_known
}
