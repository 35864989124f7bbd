//! Validation of the volumes of a pod.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_wire::names;

use super::projected;
use super::references::{VOLUME_FIELDS, validate_container_resource, validate_object_field};
use crate::field::{Errors, Field};
use crate::volume::claim::validate_claim_template;
use crate::volume::source::{self as sources, Source, descending_unreserved, file_mode, validate_sources};

/// The valid volumes of a pod by name.
pub(crate) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// The sources of volumes, in kube-apiserver's order of validation.
const SOURCES: [Source; 30] = [
    ("emptyDir", empty_dir),
    ("hostPath", sources::host_path),
    ("gitRepo", sources::git_repo),
    ("gcePersistentDisk", sources::disk),
    ("awsElasticBlockStore", sources::elastic_block_store),
    ("secret", sources::secret),
    ("nfs", sources::nfs),
    ("iscsi", sources::iscsi),
    ("glusterfs", sources::glusterfs),
    ("flocker", sources::flocker),
    ("persistentVolumeClaim", sources::claim),
    ("rbd", sources::rbd),
    ("cinder", sources::cinder),
    ("cephfs", sources::ceph),
    ("quobyte", sources::quobyte),
    ("downwardAPI", downward_api),
    ("fc", sources::fibre_channel),
    ("flexVolume", sources::flex_volume),
    ("configMap", sources::config_map),
    ("azureFile", sources::azure_file),
    ("vsphereVolume", sources::vsphere),
    ("photonPersistentDisk", sources::photon),
    ("portworxVolume", sources::portworx),
    ("azureDisk", sources::azure_disk),
    ("storageos", sources::storage_os),
    ("projected", projected::validate),
    ("scaleIO", sources::scale_io),
    ("csi", sources::csi),
    ("ephemeral", ephemeral),
    ("image", image),
];

/// Validates volumes and returns the valid ones. `pod` is the name of the pod, empty in a template.
pub(crate) fn validate_volumes<'a>(spec: &Field<'a>, pod: &str, errors: &mut Errors) -> Volumes<'a> {
    let volumes = spec.at("volumes");
    let created: BTreeSet<String> = volumes
        .items()
        .filter(|volume| !pod.is_empty() && volume.at("ephemeral").is_set())
        .map(|volume| format!("{pod}-{}", volume.at("name").text()))
        .collect();
    let mut found = Volumes::new();
    for volume in volumes.items() {
        let before = errors.len();
        validate_volume(&volume, pod, errors);
        let name = volume.at("name");
        if found.contains_key(name.text()) {
            errors.push(name.duplicate_as(name.text()));
        }
        if errors.len() == before {
            found.insert(name.text(), volume.value());
        }
        let claim = volume.at_path("persistentVolumeClaim/claimName");
        if created.contains(claim.text()) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(claim.invalid(detail));
        }
    }
    found
}

fn validate_volume(volume: &Field<'_>, pod: &str, errors: &mut Errors) {
    validate_sources(volume, &SOURCES, &[], errors);
    let name = volume.at("name");
    let portal = volume.at_path("iscsi/targetPortal");
    if volume.at_path("iscsi/initiatorName").is_set() && name.text().len() + 1 + portal.text().len() > 64 {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        errors.push(name.invalid_as(name.text(), detail));
    }
    let is_template = pod.is_empty() || name.text().is_empty();
    let is_first = || SOURCES.iter().find(|(name, _)| volume.at(name).is_set()).map(|(name, _)| *name);
    if !is_template && volume.at("ephemeral").is_set() && is_first() == Some("ephemeral") {
        let claim = format!("{pod}-{}", name.text());
        let quoted = windlass_schema::go_quote(&claim);
        name.check(
            |_| {
                let problems = names::dns_1123_subdomain(&claim);
                problems.into_iter().map(|problem| format!("PVC name {quoted}: {problem}")).collect()
            },
            errors,
        );
    }
    name.require_check(names::dns_1123_label, errors);
}

fn empty_dir(source: &Field<'_>, errors: &mut Errors) {
    let limit = source.at("sizeLimit");
    if limit.quantity().is_some_and(|limit| limit.signum() < 0) {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

fn downward_api(source: &Field<'_>, errors: &mut Errors) {
    file_mode(&source.at("defaultMode"), errors);
    for item in source.at("items").items() {
        // The errors do not name the item.
        validate_downward_file(&item.at_path_of(source), errors);
    }
}

/// Validates a file that shows a field of the pod or a resource of a container.
pub(crate) fn validate_downward_file(file: &Field<'_>, errors: &mut Errors) {
    let path = file.at("path");
    path.require(errors);
    descending_unreserved(&path, errors);
    let (field, resource) = (file.at("fieldRef"), file.at("resourceFieldRef"));
    if field.is_set() {
        validate_object_field(&field, &VOLUME_FIELDS, errors);
        if resource.is_set() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(file.invalid_as("resource", detail));
        }
    } else if resource.is_set() {
        validate_container_resource(&resource, true, errors);
    } else {
        errors.push(file.required("one of fieldRef and resourceFieldRef is required"));
    }
    file_mode(&file.at("mode"), errors);
}

fn ephemeral(source: &Field<'_>, errors: &mut Errors) {
    let template = source.at("volumeClaimTemplate");
    if template.is_set() {
        validate_claim_template(&template, errors);
    } else {
        errors.push(template.required(""));
    }
}

fn image(source: &Field<'_>, errors: &mut Errors) {
    source.at("reference").require(errors);
    source.at("pullPolicy").require_one_of(&["Always", "IfNotPresent", "Never"], errors);
}
