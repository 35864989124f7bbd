//! The roles of a pod's containers, and the consequences of the roles.

use k8s_openapi::api::core::v1::{Container as ContainerSpec, EphemeralContainer, PodSpec, PodStatus};

use crate::kubelet::container::RestartPolicy;

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

/// Returns whether an init container runs beside the main containers.
pub(crate) fn is_sidecar(init: &ContainerSpec) -> bool {
    init.restart_policy.as_deref() == Some("Always")
}

pub(super) fn init_restart(spec: &PodSpec, init: &ContainerSpec) -> RestartPolicy {
    match RestartPolicy::of(spec.restart_policy.as_deref()) {
        _ if is_sidecar(init) => RestartPolicy::Always,
        RestartPolicy::Never => RestartPolicy::Never,
        // An init container that has succeeded is not restarted.
        RestartPolicy::Always | RestartPolicy::OnFailure => RestartPolicy::OnFailure,
    }
}

/// Returns the restart policy of a main container: the container's own, else the pod's.
pub(crate) fn main_restart(spec: &PodSpec, main: &ContainerSpec) -> RestartPolicy {
    RestartPolicy::of(main.restart_policy.as_deref().or(spec.restart_policy.as_deref()))
}

pub(crate) fn is_terminal(status: &PodStatus) -> bool {
    matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))
}
