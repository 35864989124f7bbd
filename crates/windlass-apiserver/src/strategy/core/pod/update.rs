//! What may change in a pod that is there.

use serde_json::Value;
use windlass_schema::FieldError;

use super::validate::validate_spec;
use crate::strategy::fields::{int_at, list_at, spec_mut, text, text_at};

const FORBIDDEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What is wrong with a pod written over another.
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
    // With all that may change put back, nothing must differ.
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
    let same_but_for_seconds = |a: &Value, b: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|field| text(a, field) == text(b, field))
    };
    let new = list_at(object, "/spec/tolerations");
    let lost = list_at(old, "/spec/tolerations")
        .iter()
        .any(|before| !new.iter().any(|toleration| same_but_for_seconds(toleration, before)));
    lost.then(|| {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        FieldError::forbidden("spec.tolerations", detail)
    })
}

/// What is wrong with a write of `/ephemeralcontainers`: they may only be added.
pub(super) fn validate_ephemeral_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let path = "spec.ephemeralContainers";
    let mut errors = Vec::new();
    let new = list_at(object, "/spec/ephemeralContainers");
    for before in list_at(old, "/spec/ephemeralContainers") {
        let name = text(before, "name");
        match new.iter().find(|container| text(container, "name") == name) {
            None => {
                let detail = format!(
                    "existing ephemeral containers {} may not be removed\n",
                    windlass_schema::go_quote(name)
                );
                errors.push(FieldError::forbidden(path, detail));
            }
            Some(found) if found != before => {
                let detail = format!(
                    "existing ephemeral containers {} may not be changed\n",
                    windlass_schema::go_quote(name)
                );
                errors.push(FieldError::forbidden(path, detail));
            }
            Some(_) => {}
        }
    }
    let taken = |name: &str| {
        ["containers", "initContainers"].iter().any(|list| {
            list_at(object, &format!("/spec/{list}")).iter().any(|container| text(container, "name") == name)
        })
    };
    for (index, container) in new.iter().enumerate() {
        let name = text(container, "name");
        if taken(name) || new[..index].iter().any(|before| text(before, "name") == name) {
            errors.push(FieldError::duplicate(format!("{path}[{index}].name"), name));
        }
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}[{index}].name"), ""));
        }
        if text_at(container, "/image").is_empty() {
            errors.push(FieldError::required(format!("{path}[{index}].image"), ""));
        }
    }
    errors
}
