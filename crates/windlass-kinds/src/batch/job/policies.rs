//! Validation of the policies of a job: failure, success, and the replacement of pods.

use std::collections::BTreeSet;

use windlass_wire::names;

use super::indexes;
use crate::field::{Errors, Field};

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];

/// Formats the error about an empty value of an enumeration.
fn valid_values(known: &[&str]) -> String {
    let quoted: Vec<String> = known.iter().map(|value| windlass_schema::go_quote(value)).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn enumerated(place: &Field<'_>, known: &[&str], errors: &mut Errors) {
    if place.text().is_empty() {
        errors.push(place.required(valid_values(known)));
    } else if !known.contains(&place.text()) {
        errors.push(place.unsupported(known));
    }
}

/// Validates the policies in the spec of a job.
pub(super) fn validate(spec: &Field<'_>, errors: &mut Errors) {
    let (failure, success) = (spec.at("podFailurePolicy"), spec.at("successPolicy"));
    if failure.is_set() {
        validate_failure(spec, &failure.at("rules"), errors);
    }
    if success.is_set() {
        if spec.at("completionMode").text() == "Indexed" {
            validate_success(spec, &success.at("rules"), errors);
        } else {
            errors.push(success.invalid("requires indexed completion mode"));
        }
    }
    let replacement = spec.at("podReplacementPolicy");
    let known: &[&str] = if failure.is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    replacement.one_of(known, errors);
}

fn validate_failure(spec: &Field<'_>, rules: &Field<'_>, errors: &mut Errors) {
    if rules.len() > 20 {
        errors.push(rules.too_many(20));
    }
    let pod = spec.at_path("template/spec");
    let lists = ["containers", "initContainers"].into_iter();
    let containers: BTreeSet<&str> =
        lists.flat_map(|list| pod.at(list).items()).map(|container| container.at("name").text()).collect();
    for rule in rules.items() {
        let action = rule.at("action");
        if action.text() == "FailIndex" {
            if !spec.at("backoffLimitPerIndex").is_set() {
                errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
            }
        } else {
            enumerated(&action, &ACTIONS, errors);
        }
        let (codes, conditions) = (rule.at("onExitCodes"), rule.at("onPodConditions"));
        if codes.is_set() {
            validate_codes(&codes, &containers, errors);
        }
        validate_conditions(&conditions, errors);
        match (codes.is_set(), !conditions.is_empty()) {
            (true, true) => errors.push(
                rule.invalid_omitted("specifying both OnExitCodes and OnPodConditions is not supported"),
            ),
            (false, false) => errors
                .push(rule.invalid_omitted("specifying one of OnExitCodes and OnPodConditions is required")),
            _ => {}
        }
    }
}

fn validate_conditions(conditions: &Field<'_>, errors: &mut Errors) {
    if conditions.len() > 20 {
        errors.push(conditions.too_many(20));
    }
    for pattern in conditions.items() {
        pattern.at("type").check(names::label_key, errors);
        enumerated(&pattern.at("status"), &STATUSES, errors);
    }
}

fn validate_codes(codes: &Field<'_>, containers: &BTreeSet<&str>, errors: &mut Errors) {
    let (operator, container, values) = (codes.at("operator"), codes.at("containerName"), codes.at("values"));
    enumerated(&operator, &OPERATORS, errors);
    if container.is_set() && !containers.contains(container.text()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(container.invalid(detail));
    }
    if values.is_empty() {
        errors.push(values.invalid("at least one value is required"));
    } else if values.len() > 255 {
        errors.push(values.too_many(255));
    }
    let (mut seen, mut last, mut is_ordered) = (BTreeSet::new(), i64::MIN, true);
    for value in values.items() {
        if operator.text() == "In" && value.int() == 0 {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(value.int()) {
            errors.push(value.duplicate());
        }
        is_ordered &= last <= value.int();
        last = value.int();
    }
    if !is_ordered {
        errors.push(values.invalid("must be ordered"));
    }
}

fn validate_success(spec: &Field<'_>, rules: &Field<'_>, errors: &mut Errors) {
    let completions = spec.at("completions").int();
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(rules.required(detail));
    }
    if rules.len() > 20 {
        errors.push(rules.too_many(20));
    }
    for rule in rules.items() {
        let (indexes, count) = (rule.at("succeededIndexes"), rule.at("succeededCount"));
        if !indexes.is_set() && !count.is_set() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(rule.required(detail));
        }
        let mut total = 0;
        if indexes.is_set() {
            if indexes.text().len() > 64 * 1024 {
                errors.push(indexes.too_long(64 * 1024));
            }
            match indexes::count(indexes.text(), completions) {
                Ok(found) => total = found,
                Err(why) => errors.push(indexes.invalid(format!("error parsing succeededIndexes: {why}"))),
            }
        }
        if !count.is_set() {
            continue;
        }
        count.not_negative(errors);
        let mut at_most = |most: i64, what: &str| {
            if count.int() > most {
                errors.push(count.invalid(format!("must be less than or equal to {most} ({what})")));
            }
        };
        at_most(completions, "the number of specified completions");
        if indexes.is_set() {
            at_most(total, "the number of indexes in the specified succeededIndexes field");
        }
    }
}
