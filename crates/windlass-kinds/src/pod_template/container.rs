//! Validation of containers.

use std::collections::BTreeSet;

use windlass_wire::names;

use super::environment::{validate_sources, validate_variables};
use super::mounts::{validate_devices, validate_mounts};
use super::probe::{validate_lifecycle, validate_probes};
use super::volumes::Volumes;
use super::{resources, security};
use crate::field::{Errors, Field};

/// The common input for the containers of a pod.
pub(crate) struct Pod<'a> {
    pub(crate) spec: Field<'a>,
    pub(crate) volumes: Volumes<'a>,
    /// The names of the resource claims.
    pub(crate) claims: BTreeSet<&'a str>,
}

impl Pod<'_> {
    /// Returns whether the pod shares the user namespace of its node.
    pub(crate) fn uses_host_users(&self) -> bool {
        let field = self.spec.at("hostUsers");
        !field.is_set() || field.flag()
    }

    /// Returns the grace period of the pod.
    pub(crate) fn grace_period(&self) -> Option<i64> {
        let field = self.spec.at("terminationGracePeriodSeconds");
        field.is_set().then(|| field.int())
    }
}

/// Validates the containers of a pod. There must be one at least.
pub(crate) fn validate_containers(pod: &Pod<'_>, errors: &mut Errors) {
    let containers = pod.spec.at("containers");
    if containers.is_empty() {
        errors.push(containers.required(""));
        return;
    }
    let mut seen = BTreeSet::new();
    for container in containers.items() {
        validate_common(&container, pod, errors);
        let name = container.at("name");
        if !seen.insert(name.text()) {
            errors.push(name.duplicate_as(name.text()));
        }
        validate_lifecycle(&container.at("lifecycle"), pod, errors);
        validate_probes(&container, pod, errors);
        validate_restarts(&container, errors);
    }
    validate_host_ports(containers.items(), errors);
}

/// Validates the init containers of a pod, sidecars among them.
pub(crate) fn validate_init_containers(pod: &Pod<'_>, errors: &mut Errors) {
    let mut seen: BTreeSet<&str> =
        pod.spec.at("containers").items().map(|container| container.at("name").text()).collect();
    let list = pod.spec.at("initContainers");
    for container in list.items() {
        validate_common(&container, pod, errors);
        let policy = container.at("restartPolicy");
        let is_sidecar = policy.text() == "Always";
        if policy.is_set() {
            validate_restarts(&container, errors);
        } else if !container.at("restartPolicyRules").is_empty() {
            errors.push(policy.required("must specify restartPolicy when restart rules are used"));
        }
        let name = container.at("name");
        if seen.contains(name.text()) {
            errors.push(name.duplicate_as(name.text()));
        } else if !name.text().is_empty() {
            seen.insert(name.text());
        }
        // The errors do not name the init container.
        validate_host_ports(std::iter::once(container.at_path_of(&list.index(0))), errors);
        if is_sidecar {
            validate_lifecycle(&container.at("lifecycle"), pod, errors);
            validate_probes(&container, pod, errors);
            continue;
        }
        for part in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let part = container.at(part);
            if part.is_set() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(part.forbidden(detail));
            }
        }
        for policy in container.at("resizePolicy").items() {
            let restarts = policy.at("restartPolicy");
            if restarts.text() == "RestartContainer" {
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.push(restarts.invalid(detail));
            }
        }
    }
}

/// Validates when a container restarts.
fn validate_restarts(container: &Field<'_>, errors: &mut Errors) {
    let (policy, rules) = (container.at("restartPolicy"), container.at("restartPolicyRules"));
    if policy.is_set() {
        policy.one_of(&["Always", "Never", "OnFailure"], errors);
    } else if !rules.is_empty() {
        errors.push(policy.required("must specify restartPolicy when restart rules are used"));
    }
    if rules.len() > 20 {
        errors.push(rules.too_many(20));
    }
    for rule in rules.items() {
        let action = rule.at("action");
        if !["Restart", "RestartAllContainers"].contains(&action.text()) {
            errors.push(action.unsupported(&["Restart", "RestartAllContainers"]));
        }
        let codes = rule.at("exitCodes");
        if !codes.is_set() {
            errors.push(codes.required("must be specified"));
            continue;
        }
        let operator = codes.at("operator");
        if !["In", "NotIn"].contains(&operator.text()) {
            errors.push(operator.unsupported(&["In", "NotIn"]));
        }
        if codes.at("values").len() > 255 {
            errors.push(codes.at("values").too_many(255));
        }
    }
}

/// Validates what containers of all kinds have.
pub(crate) fn validate_common(container: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    container.at("name").require_check(names::dns_1123_label, errors);
    container.at("image").require(errors);
    container.at("terminationMessagePolicy").require_one_of(&["File", "FallbackToLogsOnError"], errors);
    validate_ports(&container.at("ports"), errors);
    validate_variables(&container.at("env"), errors);
    validate_sources(&container.at("envFrom"), errors);
    validate_mounts(container, &pod.volumes, errors);
    validate_devices(container, &pod.volumes, errors);
    container.at("imagePullPolicy").require_one_of(&["Always", "IfNotPresent", "Never"], errors);
    resources::validate_of_container(&container.at("resources"), &pod.claims, errors);
    validate_resize(&container.at("resizePolicy"), pod.spec.at("restartPolicy").text(), errors);
    security::validate_of_container(&container.at("securityContext"), pod, errors);
}

/// Checks that an image has no space around the name. Templates may have such a space.
pub(crate) fn validate_image_of_pod(container: &Field<'_>, errors: &mut Errors) {
    let image = container.at("image");
    if image.text() != image.text().trim() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

fn validate_ports(ports: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let name = port.at("name");
        if !name.text().is_empty() {
            let problems = names::port_name(name.text());
            if problems.is_empty() && !seen.insert(name.text()) {
                errors.push(name.duplicate());
            }
            errors.extend(problems.into_iter().map(|problem| name.invalid(problem)));
        }
        let number = port.at("containerPort");
        if number.int() == 0 {
            errors.push(number.required(""));
        } else {
            number.within(1, 65535, errors);
        }
        if port.at("hostPort").int() != 0 {
            port.at("hostPort").within(1, 65535, errors);
        }
        port.at("protocol").require_one_of(&["SCTP", "TCP", "UDP"], errors);
    }
}

/// Checks that no two containers have the same port of the node.
fn validate_host_ports<'a>(containers: impl Iterator<Item = Field<'a>>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for container in containers {
        for port in container.at("ports").items() {
            let number = port.at("hostPort");
            if number.int() == 0 {
                continue;
            }
            let (protocol, address) = (port.at("protocol").text(), port.at("hostIP").text());
            let shown = format!("{protocol}/{address}/{}", number.int());
            if !seen.insert(shown.clone()) {
                errors.push(number.duplicate_as(shown));
            }
        }
    }
}

fn validate_resize(policies: &Field<'_>, restart: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for policy in policies.items() {
        let (name, action) = (policy.at("resourceName").text(), policy.at("restartPolicy").text());
        if !seen.insert(name) {
            errors.push(policy.duplicate_as(name));
        }
        for (value, known) in [(name, ["cpu", "memory"]), (action, ["NotRequired", "RestartContainer"])] {
            if value.is_empty() {
                errors.push(policies.required(""));
            } else if !known.contains(&value) {
                errors.push(policies.unsupported_as(value, &known));
            }
        }
        if restart == "Never" && action != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(policies.invalid_as(action, detail));
        }
    }
}
