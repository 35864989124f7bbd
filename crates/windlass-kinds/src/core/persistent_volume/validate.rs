//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Volumes;
use crate::field::{self, Errors, Field};
use crate::json::text_at;
use crate::kind::{Validate, WriteContext};
use crate::pod_template::scheduling::validate_node_selector;
use crate::pod_template::warnings::about_term;
use crate::subresource::Subresource;
use crate::volume::claim::{class_annotation_warning, validate_access_modes};
use crate::volume::source::{self as sources, Source, validate_sources};

impl Validate for Volumes {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, validate)
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            return self.validate_status(object, old);
        }
        // The real server validates the object twice, which shows in the number of the causes.
        let errors = self.validate(object);
        [errors.clone(), errors, self.validate_change(object, old)].concat()
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::validate("", object, |object, errors| validate_change(object, &object.with(old), errors))
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = field::validate("", object, |volume, warnings| {
            warnings.extend(class_annotation_warning(volume));
            for term in volume.at_path("spec/nodeAffinity/required/nodeSelectorTerms").items() {
                about_term(&term, false, warnings);
            }
        });
        if text_at(object, "/spec/persistentVolumeReclaimPolicy") == "Recycle" {
            warnings.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
        }
        for (source, text) in DEPRECATED {
            if object.pointer(&format!("/spec/{source}")).is_some_and(|source| !source.is_null()) {
                warnings.push(format!("spec.{source}: {text}"));
            }
        }
        warnings
    }
}

const IMMUTABLE: &str = "spec.persistentvolumesource is immutable after creation\n";

/// The sources of persistent volumes, in kube-apiserver's order of validation.
const SOURCES: [Source; 22] = [
    ("hostPath", sources::host_path),
    ("gcePersistentDisk", sources::disk),
    ("awsElasticBlockStore", sources::elastic_block_store),
    ("glusterfs", sources::persistent_glusterfs),
    ("flocker", sources::flocker),
    ("nfs", sources::nfs),
    ("rbd", sources::rbd),
    ("quobyte", sources::quobyte),
    ("cephfs", sources::ceph),
    ("iscsi", sources::persistent_iscsi),
    ("cinder", sources::persistent_cinder),
    ("fc", sources::fibre_channel),
    ("flexVolume", sources::flex_volume),
    ("azureFile", sources::persistent_azure_file),
    ("vsphereVolume", sources::vsphere),
    ("photonPersistentDisk", sources::photon),
    ("portworxVolume", sources::portworx),
    ("azureDisk", sources::azure_disk),
    ("scaleIO", sources::scale_io),
    ("local", local),
    ("storageos", sources::persistent_storage_os),
    ("csi", sources::persistent_csi),
];

/// Warnings about sources that are deprecated, by the name of the field.
const DEPRECATED: [(&str, &str); 9] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
];

fn local(source: &Field<'_>, errors: &mut Errors) {
    let path = source.at("path");
    if !path.require(errors) {
        sources::no_backsteps(&path, errors);
    }
}

fn validate(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        errors.push(modes.required(""));
    }
    validate_access_modes(&modes, errors);
    validate_capacity(&spec.at("capacity"), errors);
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if !policy.text().is_empty() {
        policy.one_of(&["Delete", "Recycle", "Retain"], errors);
    }
    let affinity = spec.at("nodeAffinity");
    if affinity.is_set() {
        let required = affinity.at("required");
        if required.is_set() {
            validate_node_selector(&required, errors);
        } else {
            errors.push(required.required("must specify required node constraints"));
        }
    }
    // The real server lets a flex volume stand behind another source.
    validate_sources(&spec, &SOURCES, &["flexVolume"], errors);
    let is_only_local = SOURCES.iter().find(|(name, _)| spec.at(name).is_set()).map(|(name, _)| *name);
    if is_only_local == Some("local") && !affinity.is_set() {
        errors.push(affinity.required("Local volume requires node affinity"));
    }
    if is_root(spec.at_path("hostPath/path").text()) && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    spec.at("storageClassName").check_if_any(names::dns_1123_subdomain, errors);
    spec.at("volumeMode").one_of(&["Block", "Filesystem"], errors);
    let class = spec.at("volumeAttributesClassName");
    if class.is_set() {
        if class.text().is_empty() {
            errors.push(class.required("an empty string is disallowed"));
        } else {
            class.check(names::dns_1123_subdomain, errors);
        }
        if !spec.at("csi").is_set() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(spec.at("csi").required(detail));
        }
    }
}

/// Validates the spec of a volume that has no object: the spec in a VolumeAttachment.
pub(crate) fn validate_inline(spec: &Field<'_>, errors: &mut Errors) {
    const REFUSED: &str = "may not be specified in the context of inline volumes";
    for field in [spec.at("claimRef"), spec.at("capacity")] {
        if !field.is_empty() {
            errors.push(field.forbidden(REFUSED));
        }
    }
    if !spec.at("csi").is_set() {
        errors.push(spec.at("csi").required("has to be specified in the context of inline volumes"));
    }
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        errors.push(modes.required(""));
    }
    validate_access_modes(&modes, errors);
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if !["", "Retain"].contains(&policy.text()) {
        errors.push(policy.forbidden("may only be Retain in the context of inline volumes"));
    }
    if spec.at("nodeAffinity").is_set() {
        errors.push(spec.at("nodeAffinity").forbidden(REFUSED));
    }
    validate_sources(spec, &SOURCES, &["flexVolume"], errors);
    if !spec.at("storageClassName").text().is_empty() {
        errors.push(spec.at("storageClassName").forbidden(REFUSED));
    }
    let mode = spec.at("volumeMode");
    if !["", "Filesystem"].contains(&mode.text()) {
        errors.push(
            mode.forbidden(
                "may not specify volumeMode other than Filesystem in the context of inline volumes",
            ),
        );
    }
}

/// Returns whether a path is `/` in another form.
fn is_root(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "." | ".."))
}

fn validate_capacity(capacity: &Field<'_>, errors: &mut Errors) {
    if capacity.is_empty() {
        errors.push(capacity.required(""));
    }
    let count = capacity.map().map_or(0, serde_json::Map::len);
    if !capacity.key("storage").is_set() || count > 1 {
        let shown = capacity.map().cloned().map_or(Value::Null, Value::Object);
        errors.push(capacity.unsupported_as(shown, &["storage"]));
    }
    for (_, amount) in capacity.entries() {
        let Some(quantity) = amount.quantity() else { continue };
        if quantity.signum() < 0 {
            // The number is rounded up.
            let whole = i64::try_from(quantity.to_milli().div_euclid(1000)).unwrap_or(i64::MIN);
            errors.push(amount.invalid_as(whole, "must be a valid resource quantity"));
        }
        if quantity.signum() <= 0 {
            errors.push(amount.invalid_as(quantity.to_string(), "must be greater than zero"));
        }
    }
}

fn validate_change(object: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (spec, before) = (object.at("spec"), old.at("spec"));
    let source = |spec: &Field<'_>| {
        let fields = SOURCES.iter().map(|(name, _)| spec.at(name).value().clone());
        fields.collect::<Vec<Value>>()
    };
    let (mut new, old_source) = (source(&spec), source(&before));
    // The secret for a later expansion may be added.
    if before.at("csi").is_set()
        && !before.at_path("csi/controllerExpandSecretRef").is_set()
        && let Some(csi) = new.last_mut().and_then(Value::as_object_mut)
    {
        csi.remove("controllerExpandSecretRef");
    }
    if new != old_source {
        errors.push(spec.at("persistentvolumesource").forbidden(IMMUTABLE));
    }
    let mode = spec.at("volumeMode");
    if mode.value() != before.at("volumeMode").value() {
        errors.push(mode.at_path_of(&object.at("volumeMode")).invalid("field is immutable"));
    }
    let (affinity, had) = (spec.at("nodeAffinity"), before.at("nodeAffinity"));
    if had.is_set() && affinity.value() != had.value() {
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.push(affinity.at_path_of(&object.at("nodeAffinity")).invalid(detail));
    }
    let class = spec.at("volumeAttributesClassName");
    if before.at("volumeAttributesClassName").is_set() && !class.is_set() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}
