//! Persistent volume claims.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::claim::{claim_spec_warnings, class_annotation_warning, validate_claim_spec};
use super::pod::validate_amount;
use super::volume::FACTS;
use crate::meta;
use crate::strategy::fields::{spec_mut, text_at};
use crate::strategy::place::{self, Errors, Place};
use crate::strategy::{AdmissionPlugin, Facts, Strategy, StrategyContext};
use crate::wire::{ApiError, names};

const IMMUTABLE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The states of a claim's resize.
const RESIZES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

const CLAIM_FACTS: Facts = Facts { late_defaults: &["/status/phase"], ..FACTS };

pub(super) struct Claims;

impl Strategy for Claims {
    fn facts(&self) -> &'static Facts {
        &CLAIM_FACTS
    }

    fn default(&self, object: &mut Value) {
        for field in ["dataSource", "dataSourceRef"] {
            if let Some(source) = spec_mut(object).get_mut(field).filter(|source| source.is_object()) {
                with_group(source);
            }
        }
    }

    fn admit(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if old.is_some() {
            return Ok(());
        }
        if cx.plugins.has(AdmissionPlugin::DefaultStorageClass)
            && !meta::has_annotation(object, CLASS)
            && object["spec"].get("storageClassName").is_none_or(Value::is_null)
            && let Some(class) = &*cx.lookups.default_storage_class.get(cx.view)
        {
            spec_mut(object).insert("storageClassName".to_owned(), class.as_str().into());
        }
        if cx.plugins.has(AdmissionPlugin::StorageObjectInUseProtection) {
            meta::add_finalizer(object, "kubernetes.io/pvc-protection");
        }
        Ok(())
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"phase": "Pending"});
        drop_foreign_source(spec_mut(object));
        settle_source(spec_mut(object), false);
        Ok(())
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if cx.subresource.is_empty() {
            if !old["spec"]["dataSourceRef"].is_object() {
                drop_foreign_source(spec_mut(object));
            }
            let had_source =
                ["dataSource", "dataSourceRef"].iter().any(|field| old["spec"][*field].is_object());
            settle_source(spec_mut(object), had_source);
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        place::validate("spec", &object["spec"], validate_claim_spec)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        place::validate("", object, |object, errors| validate_change(object, &object.with(old), errors))
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = CLAIM_FACTS.unenforced_warning().into_iter().collect();
        warnings.extend(place::validate("", object, |claim, warnings| {
            warnings.extend(class_annotation_warning(claim));
            claim_spec_warnings(&claim.at("spec"), warnings);
        }));
        warnings
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        place::validate("status", &object["status"], validate_status)
    }
}

/// Drops a `dataSourceRef` to another namespace, because this feature is off by default.
fn drop_foreign_source(spec: &mut serde_json::Map<String, Value>) {
    let namespace = spec.get("dataSourceRef").and_then(|reference| reference.get("namespace"));
    if namespace.is_some_and(|namespace| !namespace.is_null() && namespace != "") {
        spec.remove("dataSourceRef");
    }
}

/// Drops a `dataSource` that is neither a claim nor a snapshot, as old clients expect, and fills in `dataSourceRef` from
/// it, or the other way round. `had_source` says whether the claim has had a source before.
fn settle_source(spec: &mut serde_json::Map<String, Value>, had_source: bool) {
    let present = |value: Option<&Value>| value.filter(|value| !value.is_null()).cloned();
    let (source, reference) = (present(spec.get("dataSource")), present(spec.get("dataSourceRef")));
    match (source, reference) {
        (Some(source), None) if !had_source && !is_claim_or_snapshot(&source) => {
            spec.remove("dataSource");
        }
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(reference)) if text_at(&reference, "/namespace").is_empty() => {
            let mut source = reference;
            if let Some(fields) = source.as_object_mut() {
                fields.remove("namespace");
            }
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

/// Writes the group of a source even if it is absent: the field has no `omitempty`.
fn with_group(source: &mut Value) {
    if let Some(fields) = source.as_object_mut() {
        fields.entry("apiGroup").or_insert(Value::Null);
    }
}

fn is_claim_or_snapshot(reference: &Value) -> bool {
    let group = text_at(reference, "/apiGroup");
    match text_at(reference, "/kind") {
        "PersistentVolumeClaim" => group.is_empty(),
        "VolumeSnapshot" => group == "snapshot.storage.k8s.io",
        _ => false,
    }
}

fn validate_change(object: &Place<'_>, old: &Place<'_>, errors: &mut Errors) {
    let (spec, before) = (object.at("spec"), old.at("spec"));
    let class = |object: &Place<'_>| object.below("metadata/annotations").key(CLASS).text().to_owned();
    if class(object) != class(old) {
        let place = object.at("metadata").at("annotations").at(CLASS);
        errors.push(place.invalid_as(class(object), "field is immutable"));
    }
    let is_bound = object.below("status/phase").text() == "Bound";
    let mut fixed = spec.value().clone();
    let mut fixed_before = before.value().clone();
    if let (Some(new), Some(old)) = (fixed.as_object_mut(), fixed_before.as_object_mut()) {
        if text_at(before.value(), "/volumeName").is_empty() {
            new.remove("volumeName");
            old.remove("volumeName");
        }
        // A claim that was made before there was a default class may get one.
        if !old.contains_key("storageClassName") {
            new.remove("storageClassName");
        }
        if is_bound {
            for spec in [new, old] {
                spec.remove("volumeAttributesClassName");
                if let Some(requests) = spec.get_mut("resources").and_then(|all| all.get_mut("requests")) {
                    requests["storage"] = Value::Null;
                }
            }
        }
    }
    if fixed != fixed_before {
        errors.push(spec.forbidden(IMMUTABLE));
    }
    let size = spec.below("resources/requests/storage");
    let shrinks = size.quantity() < before.below("resources/requests/storage").quantity();
    if shrinks
        && size.quantity() <= object.below("status/capacity/storage").quantity().or_else(|| "0".parse().ok())
    {
        errors.push(size.forbidden("field can not be less than status.capacity"));
    }
    let mode = spec.at("volumeMode");
    if mode.value() != before.at("volumeMode").value() {
        errors.push(mode.at_path_of(&object.at("volumeMode")).invalid("field is immutable"));
    }
    let attributes = spec.at("volumeAttributesClassName");
    if attributes.value() != before.at("volumeAttributesClassName").value()
        && old.below("status/currentVolumeAttributesClassName").is_set()
        && attributes.text().is_empty()
    {
        let what = if attributes.is_set() { "empty string" } else { "nil" };
        let detail =
            format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
        errors.push(attributes.forbidden(detail));
    }
}

fn validate_status(status: &Place<'_>, errors: &mut Errors) {
    for (_, amount) in status.at("capacity").entries() {
        basic(&amount, errors);
    }
    let statuses = status.at("allocatedResourceStatuses");
    for (key, resize) in statuses.entries() {
        validate_key(key, &statuses, errors);
        if !RESIZES.contains(&resize.text()) {
            errors.push(statuses.unsupported_as(key, &RESIZES));
        }
    }
    let allocated = status.at("allocatedResources");
    for (key, amount) in allocated.entries() {
        if validate_key(key, &allocated, errors) && basic(&amount, errors) {
            validate_amount("storage", &amount, errors);
        }
    }
}

fn basic(amount: &Place<'_>, errors: &mut Errors) -> bool {
    let Some(quantity) = amount.quantity().filter(|quantity| quantity.signum() < 0) else { return true };
    let whole = i64::try_from(quantity.to_milli().div_euclid(1000)).unwrap_or(i64::MIN);
    errors.push(amount.invalid_as(whole, "must be a valid resource quantity"));
    false
}

fn validate_key(key: &str, list: &Place<'_>, errors: &mut Errors) -> bool {
    let problems = names::label_key(key);
    let is_valid = problems.is_empty();
    errors.extend(problems.into_iter().map(|problem| list.invalid_as(key, problem)));
    let is_native = !key.contains('/') || key.contains("kubernetes.io/");
    let is_known = !is_native || key == "storage";
    if is_valid && !is_known {
        errors.push(list.unsupported_as(key, &["storage"]));
    }
    is_valid && is_known
}
