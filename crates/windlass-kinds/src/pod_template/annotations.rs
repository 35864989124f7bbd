//! Validation of the annotations that kube-apiserver knows.

use std::collections::BTreeSet;

use super::app_armor::ANNOTATION as APP_ARMOR;
use crate::field::{Errors, Field};
use crate::volume::source::descending;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Validates the annotations of a pod or pod template.
pub(crate) fn validate(annotations: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    if annotations.is_empty() {
        return;
    }
    let containers: BTreeSet<&str> = LISTS
        .iter()
        .flat_map(|list| spec.at(list).items())
        .map(|container| container.at("name").text())
        .collect();
    for (key, value) in annotations.entries() {
        if key == MIRROR && spec.at("nodeName").text().is_empty() {
            errors.push(value.invalid("must set spec.nodeName if mirror pod annotation is set"));
        }
        if key == DELETION_COST && !is_cost(value.text()) {
            errors.push(value.invalid("must be a 32bit integer"));
        }
        if key == SECCOMP_OF_POD || key.starts_with(SECCOMP) {
            validate_seccomp(&value.at_path_of(&annotations.report_at(key)), errors);
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            if !containers.contains(container) {
                errors.push(value.invalid_as(container, "container not found"));
            }
            let profile = value.text();
            if !["", "runtime/default", "unconfined"].contains(&profile) && !profile.starts_with("localhost/")
            {
                let quoted = windlass_schema::go_quote(profile);
                errors.push(value.invalid(format!("invalid AppArmor profile name: {quoted}")));
            }
        }
    }
}

fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits == "0" || !digits.starts_with(['0', '+']);
    is_plain && text != "-0" && text.parse::<i32>().is_ok()
}

fn validate_seccomp(value: &Field<'_>, errors: &mut Errors) {
    match value.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text => match text.strip_prefix("localhost/") {
            Some(_) => descending(value, errors),
            None => errors.push(value.invalid("must be a valid seccomp profile")),
        },
    }
}

/// Checks that annotations name the profiles that the security contexts have.
pub(crate) fn validate_profiles(annotations: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    let of_pod = spec.at("securityContext");
    validate_match(&annotations.key(SECCOMP_OF_POD), &of_pod.at("seccompProfile"), "seccomp", errors);
    for container in LISTS.iter().flat_map(|list| spec.at(list).items()) {
        let name = container.at("name").text();
        let context = container.at("securityContext");
        let annotation = annotations.key(&format!("{SECCOMP}{name}"));
        validate_match(&annotation, &context.at("seccompProfile"), "seccomp", errors);
    }
    if spec.at_path("os/name").text() == "windows" {
        return;
    }
    for container in LISTS.iter().flat_map(|list| spec.at(list).items()) {
        let name = container.at("name").text();
        let own = container.at_path("securityContext/appArmorProfile");
        let profile = if own.is_set() { own.clone() } else { of_pod.at("appArmorProfile").at_path_of(&own) };
        validate_match(&annotations.key(&format!("{APP_ARMOR}{name}")), &profile, "apparmor", errors);
    }
}

fn validate_match(annotation: &Field<'_>, profile: &Field<'_>, what: &str, errors: &mut Errors) {
    if !annotation.is_set() || !profile.is_set() {
        return;
    }
    let (text, kind) = (annotation.text(), profile.at("type"));
    let other_kind = || kind.forbidden(format!("{what} type in annotation and field must match"));
    match kind.text() {
        "Unconfined" if text != "unconfined" => errors.push(other_kind()),
        "RuntimeDefault" if text != "runtime/default" && (what == "apparmor" || text != "docker/default") => {
            errors.push(other_kind());
        }
        "Localhost" => match text.strip_prefix("localhost/") {
            None => errors.push(other_kind()),
            Some(file) => {
                let field = profile.at("localhostProfile");
                if !field.is_set() || field.text() != file {
                    errors
                        .push(field.forbidden(format!("{what} profile in annotation and field must match")));
                }
            }
        },
        _ => {}
    }
}

/// Validates a change of the annotations of a pod.
pub(crate) fn validate_change(annotations: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for (key, before) in old.entries() {
        let now = annotations.key(key);
        if now.is_set() && now.text() == before.text() {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            errors.push(now.forbidden("may not remove or update AppArmor annotations"));
        }
        if key == MIRROR {
            errors.push(now.forbidden("may not remove or update mirror pod annotation"));
        }
    }
    for (key, now) in annotations.entries().filter(|(key, _)| !old.key(key).is_set()) {
        if key.starts_with(APP_ARMOR) {
            errors.push(now.forbidden("may not add AppArmor annotations"));
        }
        if key == MIRROR {
            errors.push(now.forbidden("may not add mirror pod annotation"));
        }
    }
}
