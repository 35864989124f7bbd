//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;
use windlass_wire::names;

use super::{Namespaces, pod_security};
use crate::json::{list_at, text_at};
use crate::kind::{Validate, WriteContext};
use crate::subresource::Subresource;

impl Validate for Namespaces {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let finalizers = list_at(object, "/spec/finalizers").iter();
        let errors = finalizers.flat_map(|finalizer| validate_finalizer("spec.finalizers", finalizer));
        errors.chain(pod_security::validate(object)).collect()
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if cx.subresource.is_empty() {
            // Errors of the old object are ignored.
            let found = pod_security::validate(object);
            errors.extend(found.into_iter().filter(|error| !pod_security::validate(old).contains(error)));
        }
        if *cx.subresource == Subresource::Finalize {
            for (index, finalizer) in list_at(object, "/spec/finalizers").iter().enumerate() {
                errors.extend(validate_finalizer(&format!("spec.finalizers[{index}]"), finalizer));
            }
        }
        if *cx.subresource == Subresource::Status {
            let deleting = meta::is_deleting(object);
            let phase = text_at(object, "/status/phase");
            if deleting && phase != "Terminating" {
                let detail = "may only be 'Terminating' if `deletionTimestamp` is not empty";
                errors.push(FieldError::invalid("status.Phase", phase, detail));
            }
            if !deleting && phase != "Active" {
                let detail = "may only be 'Active' if `deletionTimestamp` is empty";
                errors.push(FieldError::invalid("status.Phase", phase, detail));
            }
        }
        errors
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let is_whole = cx.subresource.is_empty();
        is_whole.then(|| pod_security::warning(object)).flatten().into_iter().collect()
    }
}

/// Checks the name of a finalizer.
fn validate_finalizer(path: &str, finalizer: &Value) -> Vec<FieldError> {
    let name = finalizer.as_str().unwrap_or_default();
    let problems = names::label_key(name).into_iter();
    let mut errors: Vec<FieldError> =
        problems.map(|problem| FieldError::invalid(path, name, problem)).collect();
    if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}
