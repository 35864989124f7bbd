//! Updates of pods.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::{Errors, Field};
use crate::json::{items_mut, object_mut, text};
use crate::pod_template::{annotations, scheduling, validate};

const FORBIDDEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const TERMS: &str = "nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// Validates an update of a pod, in the order of kube-apiserver.
pub(super) fn validate_update(pod: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    validate::validate_pod(pod, errors);
    let (listed, before) = (pod.at_path("metadata/annotations"), old.at_path("metadata/annotations"));
    annotations::validate_change(&listed, &before, errors);
    annotations::validate(&listed, &pod.at("spec"), errors);
    let (spec, before) = (pod.at("spec"), old.at("spec"));
    for list in ["containers", "initContainers"] {
        let containers = spec.at(list);
        if containers.len() != before.at(list).len() {
            errors.push(containers.forbidden("pod updates may not add or remove containers"));
            return;
        }
        for image in containers.items().map(|container| container.at("image")) {
            image.require(errors);
            if image.text() != image.text().trim() {
                errors.push(image.invalid("must not have leading or trailing whitespace"));
            }
        }
    }
    if !validate_deadline(&spec.at("activeDeadlineSeconds"), &before.at("activeDeadlineSeconds"), errors) {
        return;
    }
    validate_tolerations(&spec.at("tolerations"), &before.at("tolerations"), errors);
    validate_gates(&spec.at("schedulingGates"), &before.at("schedulingGates"), errors);
    if spec.value() == before.value() {
        return;
    }
    if !before.at("schedulingGates").is_empty() {
        validate_gated(&spec, &before, errors);
    }
    if restored(spec.value(), before.value()) != *before.value() {
        errors.push(spec.forbidden(FORBIDDEN));
    }
}

/// Validates a change of the deadline. Returns whether validation goes on.
fn validate_deadline(deadline: &Field<'_>, before: &Field<'_>, errors: &mut Errors) -> bool {
    if !deadline.is_set() {
        if before.is_set() {
            errors.push(deadline.invalid("must not update from a positive integer to nil value"));
        }
        return true;
    }
    if !(0..=i64::from(i32::MAX)).contains(&deadline.int()) {
        errors.push(deadline.invalid("must be between 0 and 2147483647, inclusive"));
        return false;
    }
    let is_later = before.is_set() && deadline.int() > before.int();
    if is_later {
        errors.push(deadline.invalid("must be less than or equal to previous value"));
    }
    !is_later
}

fn validate_tolerations(tolerations: &Field<'_>, before: &Field<'_>, errors: &mut Errors) {
    let kept: HashSet<[&str; 4]> =
        tolerations.items().map(|toleration| but_for_seconds(&toleration)).collect();
    if before.items().any(|before| !kept.contains(&but_for_seconds(&before))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(tolerations.forbidden(detail));
        return;
    }
    scheduling::validate_tolerations(tolerations, errors);
}

/// Returns what an update keeps of a toleration.
fn but_for_seconds<'a>(toleration: &Field<'a>) -> [&'a str; 4] {
    ["key", "operator", "value", "effect"].map(|field| toleration.at(field).text())
}

fn validate_gates(gates: &Field<'_>, before: &Field<'_>, errors: &mut Errors) {
    let known: HashSet<&str> = before.items().map(|gate| gate.at("name").text()).collect();
    for gate in gates.items().map(|gate| gate.at("name")) {
        if !known.contains(gate.text()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.text());
            errors.push(gate.forbidden(detail));
        }
    }
}

/// Validates the additions that a pod may get until it is scheduled.
fn validate_gated(spec: &Field<'_>, before: &Field<'_>, errors: &mut Errors) {
    let selector = spec.at("nodeSelector");
    let is_kept = |(key, value): (&str, Field<'_>)| selector.key(key).value() == value.value();
    if !before.at("nodeSelector").entries().all(is_kept) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(selector.invalid(detail));
    }
    let (terms, old) = (spec.at("affinity").at_path(TERMS), before.at("affinity").at_path(TERMS));
    if !old.is_empty() && old.len() != terms.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(terms.invalid(detail));
        return;
    }
    for (term, before) in terms.items().zip(old.items()) {
        let begins_with = |list: &str| {
            before.at(list).items().zip(term.at(list).items()).all(|(old, new)| old.value() == new.value())
                && before.at(list).len() <= term.at(list).len()
        };
        let lists = ["matchExpressions", "matchFields"];
        let was_empty = lists.iter().all(|list| before.at(list).is_empty());
        let is_empty = lists.iter().all(|list| term.at(list).is_empty());
        if (was_empty && !is_empty) || !lists.into_iter().all(begins_with) {
            errors.push(term.invalid("only additions are allowed (no mutations or deletions)"));
        }
    }
}

/// Returns the spec with the old values of all fields that an update may change.
fn restored(spec: &Value, before: &Value) -> Value {
    let mut restored = spec.clone();
    let Some(fields) = restored.as_object_mut() else { return restored };
    let mut names = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let is_gated =
        before.get("schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
    if is_gated {
        names.push("nodeSelector");
    }
    let period = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if period(before).is_some_and(|seconds| seconds < 0) && period(spec) == Some(1) {
        names.push("terminationGracePeriodSeconds");
    }
    for name in names {
        match before.get(name) {
            Some(value) => fields.insert(name.to_owned(), value.clone()),
            None => fields.remove(name),
        };
    }
    for list in ["containers", "initContainers"] {
        let containers = before.get(list).and_then(Value::as_array).into_iter().flatten();
        for (container, before) in items_mut(fields, list).zip(containers) {
            container.insert("image".to_owned(), text(before, "image").into());
        }
    }
    if is_gated {
        restore_node_affinity(&mut restored, before);
    }
    restored
}

fn restore_node_affinity(spec: &mut Value, before: &Value) {
    let old = before.get("affinity");
    let node = old.and_then(|affinity| affinity.get("nodeAffinity"));
    if spec.get("affinity").is_none() {
        if let Some(node) = node {
            spec["affinity"] = serde_json::json!({"nodeAffinity": node});
        }
        return;
    }
    let Some(affinity) = object_mut(spec, "affinity") else { return };
    match node {
        Some(node) => affinity.insert("nodeAffinity".to_owned(), node.clone()),
        None => affinity.remove("nodeAffinity"),
    };
    if affinity.is_empty()
        && old.is_none()
        && let Some(fields) = spec.as_object_mut()
    {
        fields.remove("affinity");
    }
}
