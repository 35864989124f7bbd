//! Validation of the webhooks in a configuration.

use std::collections::BTreeSet;

use windlass_wire::names;

use super::expression::match_conditions;
use super::rule::validate_rule;
use crate::field::{Errors, Field};
use crate::selector::label_selector;

/// Validates webhooks. An update may keep match conditions that are not valid.
pub(super) fn validate_webhooks(webhooks: &Field<'_>, keeps_conditions: bool, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for webhook in webhooks.items() {
        validate_webhook(&webhook, errors);
        if !keeps_conditions {
            match_conditions(&webhook.at("matchConditions"), false, errors);
        }
        validate_review_versions(&webhook.at("admissionReviewVersions"), errors);
        let name = webhook.at("name");
        if !name.text().is_empty() && !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}

fn validate_webhook(webhook: &Field<'_>, errors: &mut Errors) {
    validate_name(&webhook.at("name"), errors);
    for rule in webhook.at("rules").items() {
        validate_rule(&rule, errors);
    }
    webhook.at("failurePolicy").one_of(&["Fail", "Ignore"], errors);
    webhook.at("matchPolicy").one_of(&["Equivalent", "Exact"], errors);
    let effects = webhook.at("sideEffects");
    if !effects.is_set() {
        errors.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    effects.one_of(&["None", "NoneOnDryRun"], errors);
    let timeout = webhook.at("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.int()) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        label_selector(&webhook.at(selector), errors);
    }
    webhook.at("reinvocationPolicy").one_of(&["IfNeeded", "Never"], errors);
    let config = webhook.at("clientConfig");
    errors.extend(windlass_wire::validate_client_config(config.value(), config.path()));
}

fn validate_name(name: &Field<'_>, errors: &mut Errors) {
    if name.require(errors) {
        return;
    }
    let problems = names::dns_1123_subdomain(name.text());
    if problems.is_empty() && name.text().split('.').count() < 3 {
        errors.push(name.invalid("should be a domain with at least three segments separated by dots"));
    }
    errors.extend(problems.into_iter().map(|problem| name.invalid(problem)));
}

fn validate_review_versions(versions: &Field<'_>, errors: &mut Errors) {
    if versions.is_empty() {
        errors.push(versions.required("must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if seen.insert(version.text()) {
            version.check(names::dns_1035_label, errors);
        } else {
            errors.push(version.invalid("duplicate version"));
        }
    }
    if !seen.contains("v1") && !seen.contains("v1beta1") {
        errors.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}
