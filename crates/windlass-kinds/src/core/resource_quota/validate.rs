//! Validation and warnings.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;

use super::ResourceQuotas;
use crate::field::{self, Errors, Field};
use crate::kind::Validate;
use crate::pod_template::resources::{validate_amount, validate_name};

impl Validate for ResourceQuotas {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| {
            validate_limits(&spec.at("hard"), errors);
            validate_scopes(spec, errors);
            validate_selector(spec, errors);
        })
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let scopes = |object: &Value| -> BTreeSet<String> {
            let list = object["spec"]["scopes"].as_array().into_iter().flatten();
            list.filter_map(|scope| scope.as_str().map(str::to_owned)).collect()
        };
        if scopes(object) == scopes(old) {
            return Vec::new();
        }
        let shown = object["spec"]["scopes"].clone();
        vec![FieldError::invalid("spec.scopes", shown, "field is immutable")]
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        field::validate("status", &object["status"], |status, errors| {
            validate_limits(&status.at("hard"), errors);
            validate_limits(&status.at("used"), errors);
        })
    }
}

const STANDARD: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

/// The resources of pods that quotas with a scope of pods may limit.
const OF_PODS: [&str; 7] =
    ["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

/// The resources of claims that quotas with a scope of claims may limit.
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// Scopes that no object has both of.
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

const NO_VALUES: &str = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";

const SOME_VALUES: &str = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";

const MUST_EXIST: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

fn is_standard(resource: &str) -> bool {
    let huge_pages = ["hugepages-", "requests.hugepages-"];
    STANDARD.contains(&resource) || huge_pages.iter().any(|prefix| resource.starts_with(prefix))
}

fn validate_limits(limits: &Field<'_>, errors: &mut Errors) {
    for (resource, limit) in limits.entries() {
        validate_name(resource, &limit, errors);
        if !resource.contains('/') && !is_standard(resource) {
            errors.push(limit.invalid_as(resource, "must be a standard resource for quota"));
        }
        validate_amount(resource, &limit, errors);
    }
}

/// Returns whether a scope may be combined with a limit of the resource. An unknown scope may.
fn concerns(scope: &str, resource: &str) -> bool {
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => OF_PODS.contains(&resource),
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => OF_CLAIMS.contains(&resource),
        _ => true,
    }
}

fn is_known(scope: &str) -> bool {
    !concerns(scope, "")
}

/// Returns the number of limits with which a scope may not be combined.
fn count_unsupported_scopes(scope: &str, spec: &Field<'_>) -> usize {
    let limits = spec.at("hard");
    limits.entries().filter(|(resource, _)| is_standard(resource) && !concerns(scope, resource)).count()
}

fn validate_scopes(spec: &Field<'_>, errors: &mut Errors) {
    let list = spec.at("scopes");
    for scope in list.items() {
        if !is_known(scope.text()) {
            errors.push(list.invalid("unsupported scope"));
        }
        let count = count_unsupported_scopes(scope.text(), spec);
        errors.extend((0..count).map(|_| list.invalid("unsupported scope applied to resource")));
    }
    let given: Vec<&str> = list.items().map(|scope| scope.text()).collect();
    errors.extend(conflicts(&given).map(|()| list.invalid("conflicting scopes")));
}

fn conflicts<'a>(scopes: &'a [&str]) -> impl Iterator<Item = ()> + 'a {
    CONFLICTS.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))).map(|_| ())
}

fn validate_selector(spec: &Field<'_>, errors: &mut Errors) {
    let selector = spec.at("scopeSelector");
    if !selector.is_set() {
        return;
    }
    let list = selector.report_under(spec, "scopeSelector.matchExpressions");
    let mut given = Vec::new();
    for requirement in selector.at("matchExpressions").items() {
        // The real server does not name the requirement.
        let at = |field: &str| {
            let place = requirement.at(field);
            place.report_under(&list, field)
        };
        let (scope, operator, values) = (at("scopeName"), at("operator"), at("values"));
        if !is_known(scope.text()) {
            errors.push(scope.invalid("unsupported scope"));
        }
        let count = count_unsupported_scopes(scope.text(), spec);
        errors.extend((0..count).map(|_| list.invalid("unsupported scope applied to resource")));
        let takes_values = ["PriorityClass", "VolumeAttributesClass"].contains(&scope.text());
        if is_known(scope.text()) && !takes_values && operator.text() != "Exists" {
            errors.push(operator.invalid(MUST_EXIST));
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => errors.push(values.required(SOME_VALUES)),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(values.invalid(NO_VALUES)),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
        given.push(scope.text());
    }
    let shown = spec.at("scopes").report_under(spec, "scopeSelector.matchExpressions");
    errors.extend(conflicts(&given).map(|()| shown.invalid("conflicting scopes")));
}
