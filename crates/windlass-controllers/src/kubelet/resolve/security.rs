//! Users, groups and limits of a container.

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use windlass_node::{Limits, User};
use windlass_schema::Quantity;

/// Returns who a container runs as: the container's security context, else the pod's. `pod` is `NAME_NAMESPACE(UID)`.
///
/// # Errors
/// The user is root although the pod must not run as root.
pub(in crate::kubelet) fn user(spec: &PodSpec, container: &Container, pod: &str) -> Result<User, String> {
    let pod_context = spec.security_context.clone().unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let id = |own: Option<i64>, shared: Option<i64>| own.or(shared).and_then(|id| u32::try_from(id).ok());
    let user = id(own.run_as_user, pod_context.run_as_user);
    let must_not_be_root = own.run_as_non_root.or(pod_context.run_as_non_root).unwrap_or(false);
    if must_not_be_root && user == Some(0) {
        return Err(format!(
            "container's runAsUser breaks non-root policy (pod: {pod:?}, container: {})",
            container.name
        ));
    }
    let groups = pod_context.supplemental_groups.iter().flatten().copied().chain(pod_context.fs_group);
    Ok(User {
        user,
        group: id(own.run_as_group, pod_context.run_as_group),
        supplementary_groups: groups.filter_map(|group| u32::try_from(group).ok()).collect(),
        must_not_be_root,
    })
}

/// Returns the group that owns the files of the volumes.
pub(in crate::kubelet) fn file_group(spec: &PodSpec) -> Option<u32> {
    spec.security_context.as_ref()?.fs_group.and_then(|group| u32::try_from(group).ok())
}

/// Returns the limits of a container.
pub(in crate::kubelet) fn limits(resources: Option<&ResourceRequirements>) -> Limits {
    let limit = |name: &str| -> Option<i128> {
        let amount: Quantity = resources?.limits.as_ref()?.get(name)?.0.parse().ok()?;
        Some(amount.to_milli())
    };
    let memory = limit("memory").and_then(|milli| u64::try_from(milli / 1000).ok());
    let cpu = limit("cpu").and_then(|milli| u64::try_from(milli).ok());
    Limits { memory, cpu, processes: None }
}
