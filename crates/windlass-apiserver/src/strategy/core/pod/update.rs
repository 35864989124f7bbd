//! Updates of pods.

use std::collections::HashSet;

use serde_json::Value;
use windlass_schema::FieldError;

use super::validate::validate_spec;
use crate::strategy::fields::{int_at, list_at, spec_mut, text};

const FORBIDDEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of a pod, in the order of kube-apiserver.
pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = validate_spec(&object["spec"], "spec");
    if !errors.is_empty() {
        return errors;
    }
    for list in ["containers", "initContainers"] {
        let pointer = format!("/spec/{list}");
        if list_at(object, &pointer).len() != list_at(old, &pointer).len() {
            let path = format!("spec.{list}");
            return vec![FieldError::forbidden(path, "pod updates may not add or remove containers")];
        }
    }
    errors.extend(validate_deadline(object, old));
    errors.extend(validate_tolerations(object, old));
    if !errors.is_empty() {
        return errors;
    }
    // Restore all mutable fields: the rest must be equal.
    let mut restored = object.clone();
    let spec = spec_mut(&mut restored);
    for field in ["activeDeadlineSeconds", "tolerations"] {
        match old.pointer(&format!("/spec/{field}")) {
            Some(value) => spec.insert(field.to_owned(), value.clone()),
            None => spec.remove(field),
        };
    }
    for list in ["containers", "initContainers"] {
        let before = list_at(old, &format!("/spec/{list}"));
        for (container, before) in crate::strategy::fields::items_mut(spec, list).zip(before) {
            container.insert("image".to_owned(), text(before, "image").into());
        }
    }
    if int_at(old, "/spec/terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0)
        && int_at(object, "/spec/terminationGracePeriodSeconds") == Some(1)
    {
        spec.insert(
            "terminationGracePeriodSeconds".to_owned(),
            old["spec"]["terminationGracePeriodSeconds"].clone(),
        );
    }
    if is_gated(old) {
        for field in ["nodeSelector", "affinity", "schedulingGates"] {
            match old.pointer(&format!("/spec/{field}")) {
                Some(value) => spec.insert(field.to_owned(), value.clone()),
                None => spec.remove(field),
            };
        }
    }
    if restored["spec"] != old["spec"] {
        errors.push(FieldError::forbidden("spec", FORBIDDEN));
    }
    errors
}

fn is_gated(pod: &Value) -> bool {
    !list_at(pod, "/spec/schedulingGates").is_empty()
}

fn validate_deadline(object: &Value, old: &Value) -> Option<FieldError> {
    let path = "spec.activeDeadlineSeconds";
    let (new, before) =
        (int_at(object, "/spec/activeDeadlineSeconds"), int_at(old, "/spec/activeDeadlineSeconds"));
    match (new, before) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            Some(FieldError::invalid(path, new, "must be between 0 and 2147483647, inclusive"))
        }
        (Some(new), Some(before)) if new > before => {
            Some(FieldError::invalid(path, new, "must be less than or equal to previous value"))
        }
        (None, Some(_)) => Some(FieldError::invalid(
            path,
            Value::Null,
            "must not update from a positive integer to nil value",
        )),
        _ => None,
    }
}

fn validate_tolerations(object: &Value, old: &Value) -> Option<FieldError> {
    let but_for_seconds =
        |toleration| ["key", "operator", "value", "effect"].map(|field| text(toleration, field));
    let new: HashSet<[&str; 4]> = list_at(object, "/spec/tolerations").iter().map(but_for_seconds).collect();
    let lost = list_at(old, "/spec/tolerations").iter().any(|before| !new.contains(&but_for_seconds(before)));
    lost.then(|| {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        FieldError::forbidden("spec.tolerations", detail)
    })
}
