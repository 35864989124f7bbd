//! Admission webhook configurations and admission policies.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;

use super::checks::enumerated;
use super::facts::not_enforced;
use super::fields::{int_at, list_at, text};
use super::{Facts, FactsOnly, Generation, Strategy, StrategyContext, Writes};
use crate::wire::{self, names};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => &Configurations,
        "validatingadmissionpolicies"
        | "mutatingadmissionpolicies"
        | "validatingadmissionpolicybindings"
        | "mutatingadmissionpolicybindings" => &FactsOnly(&POLICIES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const CONFIGURATIONS: Facts =
    Facts { generation: Generation::All, unconditional_update: false, ..Facts::SPEC };
const POLICIES: Facts = Facts {
    unconditional_update: false,
    writes: Writes::STATUS_ONLY,
    unenforced: Some("admission policies are not evaluated"),
    ..Facts::SPEC
};

struct Configurations;

impl Strategy for Configurations {
    fn facts(&self) -> &'static Facts {
        &CONFIGURATIONS
    }

    fn warnings(&self, _: &StrategyContext<'_>, object: &Value, _: Option<&Value>) -> Vec<String> {
        let webhooks = list_at(object, "/webhooks").iter();
        let mut conditional = webhooks.filter(|webhook| !list_at(webhook, "/matchConditions").is_empty());
        let why = "matchConditions are not evaluated: a webhook is called for each request that its rules and selectors match";
        conditional.next().map(|_| not_enforced(why)).into_iter().collect()
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, webhook) in list_at(object, "/webhooks").iter().enumerate() {
            let path = format!("webhooks[{index}]");
            validate_webhook(webhook, &path, &mut errors);
            let name = text(webhook, "name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name));
            }
        }
        errors
    }
}

fn validate_webhook(webhook: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let field = |name: &str| format!("{path}.{name}");
    let name = text(webhook, "name");
    if name.is_empty() {
        errors.push(FieldError::required(field("name"), ""));
    } else {
        let problems = names::dns_1123_subdomain(name);
        if problems.is_empty() && name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(field("name"), name, detail));
        }
        errors.extend(problems.into_iter().map(|text| FieldError::invalid(field("name"), name, text)));
    }
    for (index, rule) in list_at(webhook, "/rules").iter().enumerate() {
        for part in ["operations", "apiGroups", "apiVersions", "resources"] {
            if list_at(rule, &format!("/{part}")).is_empty() {
                errors.push(FieldError::required(format!("{path}.rules[{index}].{part}"), ""));
            }
        }
    }
    errors.extend(enumerated(&field("failurePolicy"), text(webhook, "failurePolicy"), &["Fail", "Ignore"]));
    errors.extend(enumerated(&field("matchPolicy"), text(webhook, "matchPolicy"), &["Equivalent", "Exact"]));
    let effects = text(webhook, "sideEffects");
    if effects.is_empty() {
        errors.push(FieldError::required(field("sideEffects"), "must specify one of None, NoneOnDryRun"));
    }
    errors.extend(enumerated(&field("sideEffects"), effects, &["None", "NoneOnDryRun"]));
    let timeout = int_at(webhook, "/timeoutSeconds").unwrap_or(10);
    if !(1..=30).contains(&timeout) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(field("timeoutSeconds"), timeout, detail));
    }
    errors.extend(wire::validate_client_config(&webhook["clientConfig"], &field("clientConfig")));
    let versions = list_at(webhook, "/admissionReviewVersions");
    let versions_field = field("admissionReviewVersions");
    if versions.is_empty() {
        errors.push(FieldError::required(versions_field, "must specify one of v1, v1beta1"));
    } else if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(versions_field, versions.to_vec(), detail));
    }
}
