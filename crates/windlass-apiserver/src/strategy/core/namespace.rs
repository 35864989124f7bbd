//! Namespaces.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::pod_security;
use crate::meta;
use crate::strategy::fields::{list_at, spec_mut, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext, Writes};
use crate::wire::{ApiError, GroupResource, names};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) struct Namespaces;

const FACTS: Facts = Facts {
    name: names::label_name,
    returns_deleted_object: true,
    selectable: &[("status.phase", "/status/phase")],
    writes: &[
        ("", Writes::AllBut(&["spec", "status"])),
        ("status", Writes::AllBut(&["spec"])),
        ("finalize", Writes::AllBut(&["status"])),
    ],
    ..Facts::DATA
};

fn label_with_name(object: &mut Value) {
    let name = meta::name(object).to_owned();
    let labels = meta::metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut()
        && !name.is_empty()
    {
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
}

impl Strategy for Namespaces {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn reset_fields(&self, subresource: &str) -> &'static [&'static str] {
        // The spec is kept, and the writer nevertheless owns the spec.
        if subresource == "status" { &["spec"] } else { &["status"] }
    }

    fn default(&self, object: &mut Value) {
        label_with_name(object);
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        label_with_name(object);
        let finalizers = list_at(object, "/spec/finalizers").to_vec();
        let spec = spec_mut(object);
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            let mut finalizers = finalizers;
            finalizers.push("kubernetes".into());
            spec.insert("finalizers".to_owned(), finalizers.into());
        }
        object["status"] = json!({"phase": "Active"});
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        label_with_name(object);
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let finalizers = list_at(object, "/spec/finalizers").iter();
        let errors = finalizers.flat_map(|finalizer| validate_finalizer("spec.finalizers", finalizer));
        errors.chain(pod_security::validate(object)).collect()
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if cx.subresource.is_empty() {
            // Errors of the old object are ignored.
            let found = pod_security::validate(object);
            errors.extend(found.into_iter().filter(|error| !pod_security::validate(old).contains(error)));
        }
        if cx.subresource == "finalize" {
            for (index, finalizer) in list_at(object, "/spec/finalizers").iter().enumerate() {
                errors.extend(validate_finalizer(&format!("spec.finalizers[{index}]"), finalizer));
            }
        }
        if cx.subresource == "status" {
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

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let is_whole = cx.subresource.is_empty();
        is_whole.then(|| pod_security::warning(object)).flatten().into_iter().collect()
    }

    fn may_go(&self, object: &Value) -> bool {
        list_at(object, "/spec/finalizers").is_empty()
    }

    fn prepare_delete(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<bool, ApiError> {
        let name = meta::name(object);
        if IMMORTAL.contains(&name) {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(&GroupResource::new("", "namespaces"), name, why));
        }
        // The first deletion only marks the namespace, even without finalizers.
        let is_first = !meta::is_deleting(object);
        if is_first {
            object["status"]["phase"] = "Terminating".into();
        }
        Ok(is_first || !list_at(object, "/spec/finalizers").is_empty())
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
