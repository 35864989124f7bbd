//! The built-in groups of Kubernetes: the short name, the API group, and the modules in `k8s-openapi`.

/// Short name of the group (also the module), API group, versions.
const GROUPS: &[(&str, &str, &[&str])] = &[
    ("admissionregistration", "admissionregistration.k8s.io", &["v1"]),
    ("apps", "apps", &["v1"]),
    ("autoscaling", "autoscaling", &["v1", "v2"]),
    ("batch", "batch", &["v1"]),
    ("certificates", "certificates.k8s.io", &["v1"]),
    ("coordination", "coordination.k8s.io", &["v1"]),
    ("core", "", &["v1"]),
    ("discovery", "discovery.k8s.io", &["v1"]),
    ("events", "events.k8s.io", &["v1"]),
    ("flowcontrol", "flowcontrol.apiserver.k8s.io", &["v1"]),
    ("networking", "networking.k8s.io", &["v1"]),
    ("node", "node.k8s.io", &["v1"]),
    ("policy", "policy", &["v1"]),
    ("rbac", "rbac.authorization.k8s.io", &["v1"]),
    ("resource", "resource.k8s.io", &["v1"]),
    ("scheduling", "scheduling.k8s.io", &["v1"]),
    ("storage", "storage.k8s.io", &["v1"]),
];

/// Returns the short names of the groups.
pub(crate) fn groups() -> Vec<&'static str> {
    GROUPS.iter().map(|(typed, ..)| *typed).collect()
}

/// Returns the API group. A full name, or an unknown group, is returned unchanged.
pub(crate) fn group(typed: &str) -> &str {
    GROUPS.iter().find(|(short, ..)| *short == typed).map_or(typed, |(_, full, _)| full)
}

/// Returns the module of a group and version in `k8s_openapi::api`: `networking::v1`. The group may be typed in full.
pub(crate) fn module(typed: &str, version: &str) -> Option<String> {
    let is_it = |(short, full, _): &&(&str, &str, &[&str])| *short == typed || *full == typed;
    let (short, _, versions) = GROUPS.iter().find(is_it)?;
    versions.contains(&version).then(|| format!("{short}::{version}"))
}
