//! Validation and warnings.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::{Quantity, names};

use super::LimitRanges;
use crate::field::{self, Errors, Field};
use crate::kind::Validate;
use crate::pod_template::resources::{allows_overcommit, validate_container_name, validate_name};

impl Validate for LimitRanges {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| {
            let mut types = BTreeSet::new();
            for limit in spec.at("limits").items() {
                let kind = limit.at("type");
                validate_type(&kind, errors);
                if !types.insert(kind.text().to_owned()) {
                    errors.push(kind.duplicate());
                }
                validate_limit(&limit, errors);
            }
        })
    }
}

const NO_STORAGE: &str = "either minimum or maximum storage value is required, but neither was provided";

/// A rule that one amount is not above another: the field of the error, the field with the shown value, and
/// both fields with the names in the message.
type Order = (&'static str, &'static str, (&'static str, &'static str), (&'static str, &'static str));

const ORDERS: [Order; 6] = [
    ("min", "min", ("min", "min"), ("max", "max")),
    ("defaultRequest", "defaultRequest", ("min", "min"), ("defaultRequest", "default request")),
    ("defaultRequest", "defaultRequest", ("defaultRequest", "default request"), ("max", "max")),
    ("defaultRequest", "defaultRequest", ("defaultRequest", "default request"), ("default", "default limit")),
    ("default", "min", ("min", "min"), ("default", "default")),
    ("default", "max", ("default", "default"), ("max", "max")),
];

fn validate_type(kind: &Field<'_>, errors: &mut Errors) {
    let problems = names::label_key(kind.text());
    let is_standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.text());
    if problems.is_empty() && !kind.text().contains('/') && !is_standard {
        errors.push(kind.invalid("must be a standard limit type or fully qualified"));
    }
    errors.extend(problems.into_iter().map(|problem| kind.invalid(problem)));
}

/// Validates the resources of a limit and the order of their amounts.
fn validate_limit(limit: &Field<'_>, errors: &mut Errors) {
    let kind = limit.at("type").text();
    let is_of_pods = kind == "Pod";
    let lists: &[&str] =
        if is_of_pods { &["max", "min"] } else { &["max", "min", "default", "defaultRequest"] };
    let mut resources = BTreeSet::new();
    for list in lists.iter().chain(&["maxLimitRequestRatio"]) {
        for (resource, amount) in limit.at(list).entries() {
            if ["Pod", "Container"].contains(&kind) {
                validate_container_name(resource, &amount, errors);
            } else {
                validate_name(resource, &amount, errors);
            }
            resources.insert(resource.to_owned());
        }
    }
    for list in ["default", "defaultRequest"].map(|list| limit.at(list)).iter().filter(|_| is_of_pods) {
        if !list.is_empty() {
            errors.push(list.forbidden("may not be specified when `type` is 'Pod'"));
        }
    }
    let has_storage = |list: &str| limit.at(list).key("storage").is_set();
    if kind == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        errors.push(limit.at("limits").required(NO_STORAGE));
    }
    for resource in &resources {
        validate_order(limit, lists, resource, errors);
        validate_ratio(limit, resource, errors);
        validate_overcommit(limit, resource, errors);
    }
}

/// Validates that the amounts of a resource do not contradict each other.
fn validate_order(limit: &Field<'_>, lists: &[&str], resource: &str, errors: &mut Errors) {
    let amount = |list: &str| {
        let place = limit.at(list).key(resource);
        place.quantity().filter(|_| lists.contains(&list)).map(|quantity| (quantity, place.text().to_owned()))
    };
    for (field, shown, low, high) in ORDERS {
        let (Some((least, low_text)), Some((most, high_text))) = (amount(low.0), amount(high.0)) else {
            continue;
        };
        if least > most {
            let value = amount(shown).map(|(_, text)| text).unwrap_or_default();
            let detail = format!("{} value {low_text} is greater than {} value {high_text}", low.1, high.1);
            errors.push(limit.at(field).key(resource).invalid_as(value, detail));
        }
    }
}

/// Validates the ratio of a limit to the request: at least 1, and at most the maximum.
fn validate_ratio(limit: &Field<'_>, resource: &str, errors: &mut Errors) {
    let place = limit.at("maxLimitRequestRatio").key(resource);
    let Some(ratio) = place.quantity() else { return };
    let text = place.text();
    if ratio < Quantity::whole(1) {
        errors.push(place.invalid(format!("ratio {text} is less than 1")));
    }
    let amount = |list: &str| limit.at(list).key(resource).quantity().map(|quantity| quantity.to_milli());
    let (Some(least), Some(most)) = (amount("min"), amount("max")) else { return };
    #[expect(clippy::cast_precision_loss, reason = "the real server divides floats as well")]
    let (allowed, ratio) = (most as f64 / least as f64, ratio.to_milli() as f64 / 1000.0);
    if ratio > allowed {
        errors.push(place.invalid(format!("ratio {text} is greater than max/min = {allowed:.6}")));
    }
}

/// Validates that a resource that cannot be promised twice is requested up to its limit.
fn validate_overcommit(limit: &Field<'_>, resource: &str, errors: &mut Errors) {
    let (default, request) = (limit.at("default").key(resource), limit.at("defaultRequest").key(resource));
    let is_of_pods = limit.at("type").text() == "Pod";
    if is_of_pods || allows_overcommit(resource) || !default.is_set() || !request.is_set() {
        return;
    }
    if default.quantity() != request.quantity() {
        let (default, requested) = (default.text(), request.text());
        errors.push(request.invalid(format!(
            "default value {default} must equal to defaultRequest value {requested} in {resource}"
        )));
    }
}
