//! Ephemeral containers.

use std::collections::{BTreeMap, BTreeSet};

use super::container::{self, Pod};
use super::{annotations, validate};
use crate::field::{Errors, Field};

const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// Fields of containers that ephemeral containers do not have.
const REFUSED: [&str; 8] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
];

/// Validates a write of `ephemeralcontainers`. Ephemeral containers may be added, but neither changed nor removed.
pub(crate) fn validate_update(pod: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (listed, before) = (pod.at_path("metadata/annotations"), old.at_path("metadata/annotations"));
    if before.key("kubernetes.io/config.mirror").is_set() {
        errors.push(pod.forbidden("static pods do not support ephemeral containers"));
        return;
    }
    validate::validate_pod(pod, errors);
    annotations::validate_change(&listed, &before, errors);
    annotations::validate(&listed, &pod.at("spec"), errors);
    let list = pod.at_path("spec/ephemeralContainers");
    let now: BTreeMap<&str, Field<'_>> =
        list.items().map(|container| (container.at("name").text(), container)).collect();
    for before in old.at_path("spec/ephemeralContainers").items() {
        let name = before.at("name").text();
        let quoted = windlass_schema::go_quote(name);
        match now.get(name) {
            None => {
                let detail = format!("existing ephemeral containers {quoted} may not be removed\n");
                errors.push(list.forbidden(detail));
            }
            Some(found) if found.value() != before.value() => {
                let detail = format!("existing ephemeral containers {quoted} may not be changed\n");
                errors.push(list.forbidden(detail));
            }
            Some(_) => {}
        }
    }
}

/// Validates the ephemeral containers of a pod.
pub(crate) fn validate_containers(pod: &Pod<'_>, errors: &mut Errors) {
    let others = ["containers", "initContainers"].into_iter().flat_map(|list| pod.spec.at(list).items());
    let others: BTreeSet<&str> = others.map(|container| container.at("name").text()).collect();
    let mut all = others.clone();
    for container in pod.spec.at("ephemeralContainers").items() {
        container::validate_common(&container, pod, errors);
        container::validate_image_of_pod(&container, errors);
        let (name, target) = (container.at("name"), container.at("targetContainerName"));
        if !all.insert(name.text()) {
            errors.push(name.duplicate_as(name.text()));
        }
        if !target.text().is_empty() && !others.contains(target.text()) {
            errors.push(target.not_found());
        }
        for field in REFUSED.into_iter().map(|field| container.at(field)) {
            if !field.is_empty() {
                errors.push(field.forbidden(NOT_EPHEMERAL));
            }
        }
        if container.at("lifecycle").is_set() {
            errors.push(container.at("lifecycle").forbidden(NOT_EPHEMERAL));
        }
        for mount in container.at("volumeMounts").items() {
            for field in ["subPath", "subPathExpr"].into_iter().map(|field| mount.at(field)) {
                if !field.text().is_empty() {
                    errors.push(field.forbidden(NOT_EPHEMERAL));
                }
            }
        }
    }
}
