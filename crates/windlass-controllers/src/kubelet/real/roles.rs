//! The containers of a pod, of all sorts.

use k8s_openapi::api::core::v1::{Container as ContainerSpec, EphemeralContainer, PodSpec, PodStatus};

/// Returns an ephemeral container as a container: both have the same fields, except for the target.
pub(super) fn as_container(ephemeral: &EphemeralContainer) -> Option<ContainerSpec> {
    let mut value = serde_json::to_value(ephemeral).ok()?;
    value.as_object_mut()?.remove("targetContainerName");
    serde_json::from_value(value).ok()
}

/// Returns the container of a pod with this name, of any sort.
pub(crate) fn find_container(spec: &PodSpec, name: &str) -> Option<ContainerSpec> {
    let inits = spec.init_containers.iter().flatten();
    let known = inits.chain(&spec.containers).find(|container| container.name == name).cloned();
    known.or_else(|| {
        let ephemerals = spec.ephemeral_containers.iter().flatten();
        ephemerals.filter(|ephemeral| ephemeral.name == name).find_map(as_container)
    })
}

pub(crate) fn is_terminal(status: &PodStatus) -> bool {
    matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))
}
