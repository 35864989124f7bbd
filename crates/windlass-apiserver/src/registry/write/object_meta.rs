//! Validation of metadata, the same for every kind.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;
use windlass_schema::{ErrorList, FieldError, FieldErrorKind, go_type};

use crate::managed_fields;
use crate::meta;
use crate::registry::custom;
use crate::resource::Resource;
use crate::wire::names::{self, NameCheck};
use windlass_kinds::MetadataChecks;
use windlass_kinds::Subresource;
use windlass_kinds::kind_names::EVENT;
use windlass_kinds::resources::PODS;

/// Returns the errors of a new object: the errors of the metadata, and the errors of `others`.
pub(super) fn create(
    resource: &Resource,
    object: &Value,
    others: impl FnOnce() -> Vec<FieldError>,
) -> Vec<FieldError> {
    let checks = checks(resource);
    if !custom::envelope(resource, object).is_empty() {
        return others();
    }
    if let Some(error) = malformed(resource, object) {
        return [vec![error], others()].concat();
    }
    if !checks.on_create {
        let errors = others();
        return if errors.is_empty() { whole(resource, object, names::path_segment_name) } else { errors };
    }
    let mut errors = whole(resource, object, resource.strategy.config.name);
    if checks.finalizers {
        errors.extend(standard_finalizers(object));
    }
    errors.extend(others());
    errors
}

/// Returns the errors of the metadata of an updated object. The generic registry and the strategy of the kind
/// both validate the metadata, and most errors are therefore found twice.
pub(super) fn update(
    resource: &Resource,
    subresource: &Subresource,
    object: &Value,
    old: &Value,
) -> Vec<FieldError> {
    if let Some(error) = malformed(resource, object) {
        return vec![error];
    }
    let checks = checks(resource);
    let is_pod = resource.storage == *PODS && *subresource != Subresource::Status;
    let (changes, wholes) = match subresource {
        _ if !custom::envelope(resource, object).is_empty() => (false, false),
        Subresource::None => (checks.changes, checks.whole),
        _ if is_pod => (true, true),
        _ => (checks.subresources, false),
    };
    let mut errors = whole(resource, object, names::path_segment_name);
    let change = change(object, old);
    let standard = if checks.finalizers { standard_finalizers(object) } else { Vec::new() };
    errors.extend(change.iter().cloned());
    if changes {
        errors.extend(change);
        errors.extend(standard.iter().cloned());
    }
    if wholes {
        errors.extend(whole(resource, object, resource.strategy.config.name));
        errors.extend(standard);
    }
    errors
}

/// Returns the error of labels or annotations of the wrong type, which a webhook can give to a custom resource. The
/// words are those of Go's converter.
fn malformed(resource: &Resource, object: &Value) -> Option<FieldError> {
    let metadata = object.get("metadata").filter(|_| resource.is_custom())?;
    let why = ["annotations", "labels"].iter().find_map(|field| problem_of_texts(metadata.get(field)?))?;
    Some(FieldError::invalid("metadata", metadata.clone(), why))
}

/// Returns why a value is no map of texts.
fn problem_of_texts(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(entries) => {
            let wrong = entries.values().find(|entry| !entry.is_string() && !entry.is_null())?;
            Some(if wrong.is_i64() {
                "cannot convert int64 to string".to_owned()
            } else {
                "unrecognized type: string".to_owned()
            })
        }
        Value::Array(_) => Some("cannot restore map from slice".to_owned()),
        other => Some(format!("cannot restore map from {}", go_type(other))),
    }
}

/// Returns whether kube-apiserver reports an error twice that the generic registry and the strategy both find.
pub(super) fn repeats_errors(resource: &Resource) -> bool {
    checks(resource).repeated
}

fn checks(resource: &Resource) -> MetadataChecks {
    if resource.is_custom() {
        MetadataChecks::CUSTOM
    } else {
        MetadataChecks::of(&resource.group, &resource.plural)
    }
}

/// Validates the metadata of the resources that are embedded in a custom resource.
pub(super) fn embedded(resource: &Resource, object: &Value) -> Vec<FieldError> {
    if !resource.is_custom() {
        return Vec::new();
    }
    let mut errors = ErrorList::new();
    windlass_schema::for_each_embedded_resource(resource.schema.get(), object, |found, path| {
        if errors.is_full() || !found.get("metadata").is_some_and(Value::is_object) {
            return;
        }
        let is_namespaced = !meta::namespace(found).is_empty();
        for mut error in whole_metadata(found, is_namespaced, names::path_segment_name) {
            // An embedded resource needs no name.
            if !matches!(error.kind, FieldErrorKind::Required) || error.field != "metadata.name" {
                error.field = format!("{path}.{}", error.field);
                errors.push(error);
            }
        }
    });
    errors.into_vec()
}

/// Validates all metadata of an object.
fn whole(resource: &Resource, object: &Value, check: NameCheck) -> Vec<FieldError> {
    whole_metadata(object, resource.namespaced, check)
}

fn whole_metadata(object: &Value, is_namespaced: bool, check: NameCheck) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    let name = meta::name(object);
    let generate_name = meta::text(object, "generateName");
    if !generate_name.is_empty() {
        for complaint in check(generate_name, true) {
            errors.push(FieldError::invalid("metadata.generateName", generate_name, complaint));
        }
    }
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        for complaint in check(name, false) {
            errors.push(FieldError::invalid("metadata.name", name, complaint));
        }
    }
    let namespace = meta::namespace(object);
    if is_namespaced {
        if namespace.is_empty() {
            errors.push(FieldError::required("metadata.namespace", ""));
        } else {
            for complaint in names::label_name(namespace, false) {
                errors.push(FieldError::invalid("metadata.namespace", namespace, complaint));
            }
        }
    } else if !namespace.is_empty() {
        errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
    }
    let is_negative = |value: &&Value| value.as_i64().is_some_and(|number| number < 0);
    if let Some(generation) = meta::at(object, "/metadata/generation").filter(is_negative) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", generation.clone(), detail));
    }
    errors.extend(tags(object));
    errors.extend(finalizers(object));
    errors.into_vec()
}

/// Validates labels, annotations, owners and the managers of fields.
fn tags(object: &Value) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    if let Some(labels) = meta::labels(object) {
        errors.extend(names::validate_labels(labels, "metadata.labels"));
    }
    if let Some(annotations) = meta::at(object, "/metadata/annotations").and_then(Value::as_object) {
        errors.extend(names::validate_annotations(annotations, "metadata.annotations"));
    }
    errors.extend(owners(object));
    errors.extend(managed_fields::problems(object));
    errors.into_vec()
}

fn owners(object: &Value) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    let owners = meta::at(object, "/metadata/ownerReferences").and_then(Value::as_array);
    let mut controllers: Vec<String> = Vec::new();
    for (index, owner) in owners.into_iter().flatten().enumerate() {
        let path = format!("metadata.ownerReferences[{index}]");
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::required(format!("{path}.{field}"), "must not be empty"));
            } else if field == "apiVersion" && !is_api_version(text(field)) {
                let why = "must be <group>/<version> or <version>";
                errors.push(FieldError::invalid(format!("{path}.{field}"), text(field), why));
            }
        }
        if text("apiVersion") == "v1" && text("kind") == EVENT {
            errors.push(FieldError::invalid(
                path,
                owner.clone(),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller").and_then(Value::as_bool).unwrap_or(false) {
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let shown: Vec<String> = owners.into_iter().flatten().map(show_owner).collect();
        let error = FieldError::invalid("metadata.ownerReferences", Value::Null, detail);
        errors.push(error.showing(format!("[{}]", shown.join(","))));
    }
    errors.into_vec()
}

/// Returns whether a text is a version, or a group and a version.
fn is_api_version(text: &str) -> bool {
    let version = text.split_once('/').map_or(text, |(_, version)| version);
    !version.is_empty() && !version.contains('/')
}

/// Formats an owner reference like kube-apiserver, in the order of the type.
fn show_owner(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let shown: Vec<String> = fields
        .iter()
        .filter_map(|field| Some(format!("\"{field}\":{}", windlass_schema::go_json(owner.get(*field)?))))
        .collect();
    format!("{{{}}}", shown.join(","))
}

/// Validates that finalizers are Kubernetes' own or have a domain.
fn standard_finalizers(object: &Value) -> Vec<FieldError> {
    const STANDARD: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    meta::finalizers(object)
        .enumerate()
        .filter(|(_, finalizer)| !finalizer.contains('/') && !STANDARD.contains(finalizer))
        .map(|(index, finalizer)| {
            FieldError::invalid(format!("metadata.finalizers[{index}]"), finalizer, detail)
        })
        .collect()
}

fn finalizers(object: &Value) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    for finalizer in meta::finalizers(object) {
        for complaint in names::label_key(finalizer) {
            errors.push(FieldError::invalid("metadata.finalizers", finalizer, complaint));
        }
    }
    let has = |wanted: &str| meta::finalizers(object).any(|finalizer| finalizer == wanted);
    if has("orphan") && has("foregroundDeletion") {
        let list = object.pointer("/metadata/finalizers").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(
            "metadata.finalizers",
            list,
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    errors.into_vec()
}

/// Validates a change of metadata.
fn change(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if meta::is_deleting(old) {
        let existing: HashSet<&str> = meta::finalizers(old).collect();
        let added: BTreeSet<&str> =
            meta::finalizers(object).filter(|finalizer| !existing.contains(finalizer)).collect();
        if !added.is_empty() {
            let quoted: Vec<String> = added.iter().map(|name| windlass_schema::go_quote(name)).collect();
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    quoted.join(", ")
                ),
            ));
        }
    }
    for field in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = |object: &Value| object.get("metadata").and_then(|metadata| metadata.get(field)).cloned();
        let (new, old) = (value(object), value(old));
        if new != old {
            errors.push(FieldError::invalid(
                format!("metadata.{field}"),
                new.unwrap_or_default(),
                "field is immutable",
            ));
        }
    }
    errors.extend(tags(object));
    errors
}
