//! Validation of the devices that a claim asks for.

use serde_json::Value;
use windlass_wire::names;

use super::request_names::{MOST_REQUESTS, RequestNames};
use crate::field::{Errors, Field};
use crate::resource::configuration::{MOST_CONFIGURATIONS, configuration};
use crate::resource::limits::{distinct, is_beyond};
use crate::resource::names::{declared_subdomain, fully_qualified};
use crate::resource::selectors::selectors;
use crate::resource::taints::tolerations;

/// The largest number of constraints.
const MOST_CONSTRAINTS: usize = 32;
/// The largest number of alternatives of a request.
const MOST_ALTERNATIVES: usize = 8;

const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";

/// Validates the spec of a claim.
pub(super) fn validate(spec: &Field<'_>, errors: &mut Errors) {
    let devices = spec.at("devices");
    let names = RequestNames::of(&devices);
    let (requests, constraints, config) =
        (devices.at("requests"), devices.at("constraints"), devices.at("config"));
    if !is_beyond(&requests, MOST_REQUESTS, errors) {
        distinct(&requests, &["name"], errors);
        requests.items().for_each(|item| request(&item, errors));
    }
    if !is_beyond(&constraints, MOST_CONSTRAINTS, errors) {
        constraints.items().for_each(|item| constraint(&item, &names, errors));
    }
    if !is_beyond(&config, MOST_CONFIGURATIONS, errors) {
        for item in config.items() {
            names.check_all(&item.at("requests"), errors);
            configuration(&item, false, errors);
        }
    }
}

fn request(request: &Field<'_>, errors: &mut Errors) {
    request.at("name").check(names::dns_1123_label, errors);
    let (exactly, alternatives) = (request.at("exactly"), request.at("firstAvailable"));
    match (exactly.is_set(), !alternatives.is_empty()) {
        (false, false) => errors.push(request.required(ONE_OF)),
        (true, true) => {
            errors.push(request.invalid_as(Value::Null, format!("{ONE_OF}, but multiple fields are set")));
            errors.only_declared(|errors| {
                exact_request(&exactly, errors);
                first_available(&alternatives, errors);
            });
        }
        (true, false) => exact_request(&exactly, errors),
        (false, true) => first_available(&alternatives, errors),
    }
}

fn exact_request(request: &Field<'_>, errors: &mut Errors) {
    request.at("deviceClassName").require_check(names::dns_1123_subdomain, errors);
    wanted(request, errors);
}

fn first_available(list: &Field<'_>, errors: &mut Errors) {
    if is_beyond(list, MOST_ALTERNATIVES, errors) {
        return;
    }
    distinct(list, &["name"], errors);
    for alternative in list.items() {
        alternative.at("name").check(names::dns_1123_label, errors);
        let class = alternative.at("deviceClassName");
        errors.declared(|errors| class.require_check(declared_subdomain, errors));
        wanted(&alternative, errors);
    }
}

/// Validates the fields that a request and an alternative of a request have in common.
fn wanted(request: &Field<'_>, errors: &mut Errors) {
    selectors(&request.at("selectors"), false, errors);
    let (mode, count) = (request.at("allocationMode"), request.at("count"));
    match mode.text() {
        "All" if count.int() != 0 => {
            errors.push(count.invalid("must not be specified when allocationMode is 'All'"));
        }
        "ExactCount" => count.positive(errors),
        "All" => {}
        _ => errors.declared(|errors| errors.push(mode.unsupported(&["All", "ExactCount"]))),
    }
    tolerations(&request.at("tolerations"), errors);
}

fn constraint(constraint: &Field<'_>, names: &RequestNames<'_>, errors: &mut Errors) {
    names.check_all(&constraint.at("requests"), errors);
    let attributes = ["matchAttribute", "distinctAttribute"].map(|name| constraint.at(name));
    if !attributes.iter().any(Field::is_set) {
        let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
        errors.push(constraint.required(detail));
    }
    for attribute in attributes.iter().filter(|attribute| attribute.is_set()) {
        errors.declared(|errors| fully_qualified(attribute, errors));
    }
}
