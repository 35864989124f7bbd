//! Validation of the requests that policies and bindings are limited to.

use std::collections::BTreeSet;

use super::rule::validate_rule;
use crate::field::{Errors, Field};
use crate::selector::label_selector;
use windlass_wire::names;

/// Validates the `matchConstraints` of a policy.
pub(super) fn match_constraints(constraints: &Field<'_>, errors: &mut Errors) {
    if !constraints.is_set() {
        errors.push(constraints.required(""));
        return;
    }
    match_resources(constraints, errors);
    let rules = constraints.at("resourceRules");
    if rules.is_empty() {
        errors.push(rules.required(""));
    }
}

/// Validates the `matchResources` of a binding, or the `matchConstraints` of a policy.
pub(super) fn match_resources(resources: &Field<'_>, errors: &mut Errors) {
    if !resources.is_set() {
        return;
    }
    let policy = resources.at("matchPolicy");
    if policy.is_set() {
        policy.one_of(&["Equivalent", "Exact"], errors);
    } else {
        errors.push(policy.required(""));
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        let selector = resources.at(selector);
        if selector.is_set() {
            label_selector(&selector, errors);
        } else {
            errors.push(selector.required(""));
        }
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.at(rules).items() {
            validate_names(&rule.at("resourceNames"), errors);
            validate_rule(&rule, errors);
        }
    }
}

fn validate_names(list: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for name in list.items() {
        name.check(|name| names::path_segment_name(name, false), errors);
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}

/// Reports operations that a mutating policy cannot change, in `matchConstraints` or `matchResources`.
pub(super) fn mutating_operations(resources: &Field<'_>, errors: &mut Errors) {
    let shown = resources.at("resourceRules").at("operations");
    for rule in resources.at("resourceRules").items() {
        for operation in rule.at("operations").items() {
            if !["*", "CONNECT", "CREATE", "UPDATE"].contains(&operation.text()) {
                errors.push(shown.unsupported_as(operation.text(), &["*", "CONNECT", "CREATE", "UPDATE"]));
            }
        }
    }
}
