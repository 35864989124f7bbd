//! Validation of the volumes that containers mount.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::volumes::Volumes;
use crate::field::{Errors, Field};
use crate::volume::source::descending;

/// Validates the mounts of a container. Some errors name the list instead of the element.
pub(crate) fn validate_mounts(container: &Field<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let (mounts, devices) = (container.at("volumeMounts"), container.at("volumeDevices"));
    let (device_names, device_paths) = (by_name(&devices, "devicePath"), paths(&devices, "devicePath"));
    let mut places = BTreeSet::new();
    for mount in mounts.items() {
        let (name, place) = (mount.at("name"), mount.at("mountPath"));
        name.require(errors);
        if !volumes.contains_key(name.text()) {
            errors.push(name.not_found());
        }
        place.require(errors);
        if !places.insert(place.text()) {
            errors.push(place.invalid_as(place.text(), "must be unique"));
        }
        if device_names.contains_key(name.text()) {
            errors.push(name.invalid_as(name.text(), "must not already exist in volumeDevices"));
        }
        if device_paths.contains(place.text()) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(place.invalid_as(place.text(), detail));
        }
        let (below, by) = (mount.at("subPath"), mount.at("subPathExpr"));
        descending(&below.at_path_of(&mounts.report_at("subPath")), errors);
        if !below.is_empty() && !by.is_empty() {
            errors.push(by.invalid("subPathExpr and subPath are mutually exclusive"));
        }
        descending(&by.at_path_of(&mounts.report_at("subPathExpr")), errors);
        validate_propagation(container, &mount, &mounts, errors);
        validate_read_only(&mount, &mounts, errors);
    }
}

/// Returns the paths in a list by name. The last element with a name counts.
fn by_name<'a>(list: &Field<'a>, field: &str) -> BTreeMap<&'a str, &'a str> {
    list.items().map(|item| (item.at("name").text(), item.at(field).text())).collect()
}

/// Returns the paths of [`by_name`].
fn paths<'a>(list: &Field<'a>, field: &str) -> BTreeSet<&'a str> {
    by_name(list, field).into_values().collect()
}

fn validate_propagation(container: &Field<'_>, mount: &Field<'_>, mounts: &Field<'_>, errors: &mut Errors) {
    let propagation = mount.at("mountPropagation").at_path_of(&mounts.report_at("mountPropagation"));
    propagation.one_of(&["Bidirectional", "HostToContainer", "None"], errors);
    if propagation.text() == "Bidirectional" && !container.at_path("securityContext/privileged").flag() {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(propagation.forbidden(detail));
    }
}

fn validate_read_only(mount: &Field<'_>, mounts: &Field<'_>, errors: &mut Errors) {
    let recursive = mount.at("recursiveReadOnly").at_path_of(&mounts.report_at("recursiveReadOnly"));
    recursive.one_of(&["Disabled", "Enabled", "IfPossible"], errors);
    if !["Enabled", "IfPossible"].contains(&recursive.text()) {
        return;
    }
    if !mount.at("readOnly").flag() {
        errors.push(recursive.forbidden("may only be specified when readOnly is true"));
    }
    let propagation = mount.at("mountPropagation");
    if propagation.is_set() && propagation.text() != "None" {
        let detail = "may only be specified when mountPropagation is None or not specified";
        errors.push(recursive.forbidden(detail));
    }
}

/// Validates the block devices of a container.
pub(crate) fn validate_devices(container: &Field<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let (mounts, devices) = (container.at("volumeMounts"), container.at("volumeDevices"));
    let (mount_names, mount_paths) = (by_name(&mounts, "mountPath"), paths(&mounts, "mountPath"));
    let (mut names, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let is_claim = |volume: &&Value| {
        ["persistentVolumeClaim", "ephemeral"]
            .iter()
            .any(|source| volume.get(*source).is_some_and(|source| !source.is_null()))
    };
    for device in devices.items() {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        name.require(errors);
        if names.contains(name.text()) {
            errors.push(name.invalid_as(name.text(), "must be unique"));
        }
        match volumes.get(name.text()) {
            None => errors.push(name.not_found()),
            Some(volume) if !is_claim(volume) => {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(name.invalid_as(name.text(), detail));
            }
            Some(_) => {}
        }
        path.require(errors);
        if seen.contains(path.text()) {
            errors.push(path.invalid_as(path.text(), "must be unique"));
        }
        if path.text().split('/').any(|part| part == "..") {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else {
            seen.insert(path.text());
        }
        if mount_names.contains_key(name.text()) {
            errors.push(name.invalid_as(name.text(), "must not already exist in volumeMounts"));
        }
        if mount_paths.contains(path.text()) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(path.invalid_as(path.text(), detail));
        }
        if !name.text().is_empty() {
            names.insert(name.text());
        }
    }
}
