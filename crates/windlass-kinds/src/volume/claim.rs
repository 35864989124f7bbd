//! Validation of the specs of persistent volume claims, which pods and claims share.

use serde_json::Value;
use windlass_wire::names;

use crate::checks::{fraction_warning, validate_annotations, validate_labels};
use crate::field::{Errors, Field, Warnings};
use crate::selector::label_selector;

/// The ways to mount a volume.
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// The fields of metadata that a template does not have, in the order of the Go type.
const REFUSED: [&str; 11] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
];

/// Validates the template of a claim of an ephemeral volume.
pub(crate) fn validate_claim_template(template: &Field<'_>, errors: &mut Errors) {
    validate_template_metadata(&template.at("metadata"), errors);
    validate_claim_spec(&template.at("spec"), errors);
}

/// Validates the metadata of a template of claims: labels and annotations.
pub(crate) fn validate_template_metadata(metadata: &Field<'_>, errors: &mut Errors) {
    if let Some(annotations) = metadata.at("annotations").map() {
        errors.extend(metadata.at("annotations").moved(validate_annotations(annotations, "")));
    }
    if let Some(labels) = metadata.at("labels").map() {
        errors.extend(metadata.at("labels").moved(validate_labels(labels, "")));
    }
    for name in REFUSED.iter().chain(&["finalizers", "managedFields"]) {
        let field = metadata.at(name);
        if !field.is_empty() {
            errors.push(field.forbidden("cannot be set"));
        }
    }
}

/// Validates access modes: each is known, and `ReadWriteOncePod` excludes the others.
pub(crate) fn validate_access_modes(modes: &Field<'_>, errors: &mut Errors) {
    let (mut once, mut others) = (false, false);
    for mode in modes.items() {
        let is_known = ACCESS_MODES.contains(&mode.text());
        if !is_known {
            errors.push(modes.unsupported_as(mode.text(), &ACCESS_MODES));
        }
        if mode.text() == "ReadWriteOncePod" {
            once = true;
        } else if is_known {
            others = true;
        }
    }
    if once && others {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

/// Validates the spec of a claim.
pub(crate) fn validate_claim_spec(spec: &Field<'_>, errors: &mut Errors) {
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    label_selector(&spec.at("selector"), errors);
    validate_access_modes(&modes, errors);
    let storage = spec.at_path("resources/requests/storage");
    let shown = storage.at_path_of(&spec.at("resources").key("storage"));
    match storage.quantity() {
        None => errors.push(shown.required("")),
        Some(amount) if amount.signum() <= 0 => {
            errors.push(shown.invalid_as(amount.to_string(), "must be greater than zero"));
        }
        Some(_) => {}
    }
    spec.at("storageClassName").check_if_any(names::dns_1123_subdomain, errors);
    spec.at("volumeMode").one_of(&["Block", "Filesystem"], errors);
    validate_sources(spec, errors);
    spec.at("volumeAttributesClassName").check_if_any(names::dns_1123_subdomain, errors);
}

fn validate_sources(spec: &Field<'_>, errors: &mut Errors) {
    let (source, reference) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    for source in [&source, &reference] {
        if source.is_set() {
            validate_source(source, errors);
        }
    }
    let namespace = reference.at("namespace");
    namespace.check_if_any(names::dns_1123_label, errors);
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let same = |name: &str| source.at(name).value() == reference.at(name).value();
    // The value in the error is a path, which Go prints as an empty object.
    let shown = |detail: &str| spec.invalid_as(Value::Null, detail).showing("{}");
    if !namespace.text().is_empty() {
        errors.push(shown("may not be specified when dataSourceRef.namespace is specified"));
    } else if !["apiGroup", "kind", "name"].into_iter().all(same) {
        errors.push(shown("must match dataSourceRef"));
    }
}

fn validate_source(source: &Field<'_>, errors: &mut Errors) {
    let (group, kind) = (source.at("apiGroup"), source.at("kind"));
    source.at("name").require(errors);
    kind.require(errors);
    if group.text().is_empty() && kind.text() != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(source.invalid_as(kind.text(), detail));
    }
    group.check_if_any(names::dns_1123_subdomain, errors);
}

/// The annotation that was the name of a storage class before there was a field for it.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Warns of what the spec of a claim has.
pub(crate) fn claim_spec_warnings(spec: &Field<'_>, warnings: &mut Warnings) {
    for list in ["requests", "limits"] {
        fraction_warning(&spec.at("resources").at(list).key("storage"), warnings);
    }
}

/// Warns of the annotation for the storage class of a volume or a claim.
pub(crate) fn class_annotation_warning(object: &Field<'_>) -> Option<String> {
    let annotation = object.at_path("metadata/annotations").key(CLASS_ANNOTATION);
    annotation
        .is_set()
        .then(|| annotation.warning("deprecated since v1.8; use \"storageClassName\" attribute instead"))
}
