//! Validation of the rules of a webhook: the requests that it is called for.

use std::collections::BTreeSet;

use crate::field::{Errors, Field, Warnings};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// The reviews that kube-apiserver shows to no webhook.
const REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Warns about rules that name reviews. Rules with wildcards may mean other resources.
pub(super) fn without_effect(webhooks: &Field<'_>, warnings: &mut Warnings) {
    for rule in webhooks.items().flat_map(|webhook| webhook.at("rules").items()) {
        let (groups, resources) = (rule.at("apiGroups"), rule.at("resources"));
        if groups.items().chain(resources.items()).any(|name| name.text() == "*") {
            continue;
        }
        let mut seen = BTreeSet::new();
        for (group, resource) in groups.items().flat_map(|group| {
            let resources: Vec<_> = resources.items().collect();
            resources.into_iter().map(move |resource| (group.text(), resource.text()))
        }) {
            if REVIEWS.contains(&(group, resource)) && seen.insert((group, resource)) {
                let text = format!(
                    "{resource}.{group} is excluded from admission webhooks; this rule will have no effect"
                );
                warnings.push(rule.warning(text));
            }
        }
    }
}

pub(super) fn validate_rule(rule: &Field<'_>, errors: &mut Errors) {
    let operations = rule.at("operations");
    require_all_or_some(&operations, "operations", errors);
    for operation in operations.items() {
        operation.one_of(&OPERATIONS, errors);
    }
    require_all_or_some(&rule.at("apiGroups"), "API groups", errors);
    let versions = rule.at("apiVersions");
    require_all_or_some(&versions, "API versions", errors);
    for version in versions.items() {
        version.require(errors);
    }
    validate_resources(&rule.at("resources"), errors);
    rule.at("scope").one_of(&SCOPES, errors);
}

/// Checks that a list is not empty, and that `*` is the only element of a list with `*`.
fn require_all_or_some(list: &Field<'_>, elements: &str, errors: &mut Errors) {
    if list.is_empty() {
        errors.push(list.required(""));
    }
    if list.len() > 1 && list.items().any(|element| element.text() == "*") {
        errors.push(list.invalid(format!("if '*' is present, must not specify other {elements}")));
    }
}

/// Validates resources with or without a subresource, each of which may be `*`.
fn validate_resources(resources: &Field<'_>, errors: &mut Errors) {
    if resources.is_empty() {
        errors.push(resources.required(""));
    }
    let (mut with_all_subresources, mut of_all_resources) = (BTreeSet::new(), BTreeSet::new());
    // As in kube-apiserver, the last resource without a subresource decides.
    let mut is_last_named = false;
    for place in resources.items() {
        if place.require(errors) {
            continue;
        }
        let text = place.text();
        let Some((resource, subresource)) = text.split_once('/') else {
            is_last_named = text != "*";
            continue;
        };
        if with_all_subresources.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.push(place.invalid(detail));
        }
        if of_all_resources.contains(subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {text}");
            errors.push(place.invalid(detail));
        }
        if subresource == "*" {
            with_all_subresources.insert(resource);
        }
        if resource == "*" {
            of_all_resources.insert(subresource);
        }
    }
    let has = |name: &str| resources.items().any(|place| place.text() == name);
    if resources.len() > 1 && has("*/*") {
        errors.push(resources.invalid("if '*/*' is present, must not specify other resources"));
    }
    if is_last_named && has("*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(resources.invalid(detail));
    }
}
