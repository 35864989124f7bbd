//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Migrations;
use crate::checks::{conditions, immutable};
use crate::field::{self, Errors, Field};
use crate::json::{list_at, text};
use crate::kind::Validate;

impl Validate for Migrations {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| {
            let resource = spec.at("resource");
            let (group, name) = (resource.at("group"), resource.at("resource"));
            if name.text().is_empty() {
                errors.push(name.required("resource is required to be set"));
            } else {
                check_joined(&name, names::dns_1035_label, errors);
            }
            if !group.text().is_empty() {
                check_joined(&group, names::dns_1123_subdomain, errors);
            }
        })
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec")
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let before = text(&old["status"], "resourceVersion");
        field::validate("status", &object["status"], |status, errors| {
            let (version, list) = (status.at("resourceVersion"), status.at("conditions"));
            if let Some(problem) = problem_of_version(version.text()) {
                errors.push(version.invalid(problem));
            }
            conditions(&list, errors);
            if !before.is_empty() && version.text() != before {
                errors.push(version.invalid("field is immutable"));
            }
            let [succeeded, failed] = ["Succeeded", "Failed"].map(|kind| is_true(object, kind));
            if succeeded && failed {
                errors
                    .push(list.invalid("Both success and failed conditions cannot be true at the same time"));
            }
            if is_true(old, "Succeeded") && !succeeded {
                errors.push(list.invalid("Success condition cannot be set to false once it is true"));
            }
            if is_true(old, "Failed") && !failed {
                errors.push(list.invalid("Failed condition cannot be set to false once it is true"));
            }
        })
    }
}

/// Adds at most one error, with all problems of the text.
fn check_joined(place: &Field<'_>, problems: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let problems = problems(place.text());
    if !problems.is_empty() {
        errors.push(place.invalid(problems.join(",")));
    }
}

/// Returns the problem of a resource version. An empty version has no problem.
fn problem_of_version(version: &str) -> Option<String> {
    let is_number = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
    (!version.is_empty() && !is_number).then(|| format!("resource version is not well formed: {version}"))
}

fn is_true(object: &Value, kind: &str) -> bool {
    let mut conditions = list_at(object, "/status/conditions").iter();
    conditions.any(|condition| text(condition, "type") == kind && text(condition, "status") == "True")
}
