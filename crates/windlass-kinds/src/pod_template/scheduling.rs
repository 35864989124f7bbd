//! Validation of where a pod may run: affinity, tolerations, spread constraints.

use std::collections::{BTreeMap, BTreeSet};

use windlass_wire::names;

use crate::field::{Errors, Field};
use crate::selector::label_selector;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Validates tolerations.
pub(crate) fn validate_tolerations(tolerations: &Field<'_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        let (key, operator) = (toleration.at("key"), toleration.at("operator"));
        let (value, effect) = (toleration.at("value"), toleration.at("effect"));
        key.check_if_any(names::label_key, errors);
        if key.text().is_empty() && operator.text() != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(operator.invalid_as(operator.text(), detail));
        }
        if toleration.at("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(effect.invalid_as(effect.text(), detail));
        }
        match operator.text() {
            "" | "Equal" => {
                let problems = names::label_value(value.text());
                if !problems.is_empty() {
                    errors.push(operator.invalid_as(value.text(), problems.join(";")));
                }
            }
            "Exists" => {
                if !value.text().is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.push(operator.invalid_as(value.text(), detail));
                }
            }
            "Lt" | "Gt" => errors.push(operator.unsupported(&["Equal", "Exists", "Lt", "Gt"])),
            _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
        }
        if !effect.text().is_empty() {
            effect.one_of(&EFFECTS, errors);
        }
    }
}

/// Validates affinity and anti-affinity.
pub(crate) fn validate_affinity(affinity: &Field<'_>, errors: &mut Errors) {
    let node = affinity.at("nodeAffinity");
    let required = node.at(REQUIRED);
    if required.is_set() {
        validate_node_selector(&required, errors);
    }
    for term in node.at(PREFERRED).items() {
        validate_weight(&term, errors);
        validate_node_term(&term.at("preference"), true, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = affinity.at(kind);
        for term in affinity.at(REQUIRED).items() {
            validate_pod_term(&term, errors);
        }
        for term in affinity.at(PREFERRED).items() {
            validate_weight(&term, errors);
            validate_pod_term(&term.at("podAffinityTerm"), errors);
        }
    }
}

fn validate_weight(term: &Field<'_>, errors: &mut Errors) {
    let weight = term.at("weight");
    if !(1..=100).contains(&weight.int()) {
        errors.push(weight.invalid_as(weight.int(), "must be in the range 1-100"));
    }
}

/// Validates a selector of nodes.
pub(crate) fn validate_node_selector(selector: &Field<'_>, errors: &mut Errors) {
    let terms = selector.at("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        validate_node_term(&term, false, errors);
    }
}

fn validate_node_term(term: &Field<'_>, allows_bad_values: bool, errors: &mut Errors) {
    for requirement in term.at("matchExpressions").items() {
        validate_requirement(&requirement, allows_bad_values, errors);
    }
    for requirement in term.at("matchFields").items() {
        validate_field_requirement(&requirement, errors);
    }
}

fn validate_requirement(requirement: &Field<'_>, allows_bad_values: bool, errors: &mut Errors) {
    let (operator, values, key) =
        (requirement.at("operator"), requirement.at("values"), requirement.at("key"));
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors
                .push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(operator.invalid_as(other, "not a valid selector operator")),
    }
    key.check(names::label_key, errors);
    if !allows_bad_values {
        for value in values.items() {
            value.check(names::label_value, errors);
        }
    }
}

fn validate_field_requirement(requirement: &Field<'_>, errors: &mut Errors) {
    let (operator, values, key) =
        (requirement.at("operator"), requirement.at("values"), requirement.at("key"));
    match operator.text() {
        "In" | "NotIn" => {
            if values.len() != 1 {
                let detail =
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(values.required(detail));
            }
        }
        other => errors.push(operator.invalid_as(other, "not a valid selector operator")),
    }
    if key.text() == "metadata.name" {
        for value in values.items() {
            value.check(names::dns_1123_subdomain, errors);
        }
    } else {
        errors.push(key.invalid_as(key.text(), "not a valid field selector key"));
    }
}

fn validate_pod_term(term: &Field<'_>, errors: &mut Errors) {
    label_selector(&term.at("labelSelector"), errors);
    label_selector(&term.at("namespaceSelector"), errors);
    for namespace in term.at("namespaces").items() {
        namespace.at_path_of(&term.at("namespace")).check(names::dns_1123_label, errors);
    }
    validate_label_keys(term, errors);
    let key = term.at("topologyKey");
    if key.text().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    key.check(names::label_key, errors);
}

/// Validates the keys with values that the pod determines.
fn validate_label_keys(term: &Field<'_>, errors: &mut Errors) {
    let (same, other) = (term.at("matchLabelKeys"), term.at("mismatchLabelKeys"));
    let selector = term.at("labelSelector");
    for keys in [&same, &other] {
        if !keys.is_empty() && !selector.is_set() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in keys.items() {
            key.check(names::label_key, errors);
        }
    }
    let indexes: BTreeMap<&str, usize> =
        same.items().enumerate().map(|(index, key)| (key.text(), index)).collect();
    let mut seen: BTreeSet<&str> = selector.at("matchLabels").entries().map(|(key, _)| key).collect();
    for expression in selector.at("matchExpressions").items() {
        let key = expression.at("key").text();
        if let Some(index) = indexes.get(key)
            && seen.contains(key)
        {
            errors
                .push(term.index(*index).invalid_as(key, "exists in both matchLabelKeys and labelSelector"));
        }
        seen.insert(key);
    }
    let others: BTreeSet<&str> = other.items().map(|key| key.text()).collect();
    for key in same.items().filter(|key| others.contains(key.text())) {
        errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
}

/// Validates how pods spread.
pub(crate) fn validate_spread(constraints: &Field<'_>, errors: &mut Errors) {
    let pair = |constraint: &Field<'_>| {
        ["topologyKey", "whenUnsatisfiable"].map(|field| constraint.at(field).text().to_owned())
    };
    let mut later: BTreeMap<[String; 2], usize> = BTreeMap::new();
    for constraint in constraints.items() {
        *later.entry(pair(&constraint)).or_default() += 1;
    }
    for constraint in constraints.items() {
        let (key, action) = (constraint.at("topologyKey"), constraint.at("whenUnsatisfiable"));
        constraint.at("maxSkew").positive(errors);
        if key.text().is_empty() {
            errors.push(key.required("can not be empty"));
        }
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&action.text()) {
            errors.push(action.unsupported(&["DoNotSchedule", "ScheduleAnyway"]));
        }
        let left = later.entry(pair(&constraint)).or_default();
        *left -= 1;
        if *left > 0 {
            let place = constraint.at("{topologyKey, whenUnsatisfiable}");
            errors.push(place.duplicate_as(format!("{{{}, {}}}", key.text(), action.text())));
        }
        let domains = constraint.at("minDomains");
        if domains.is_set() {
            domains.positive(errors);
            if action.text() != "DoNotSchedule" {
                let detail = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    action.text()
                );
                errors.push(domains.invalid(detail));
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.at(name).one_of(&["Honor", "Ignore"], errors);
        }
        validate_label_keys(&constraint, errors);
        label_selector(&constraint.at("labelSelector"), errors);
    }
}
