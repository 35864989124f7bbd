//! The components of a real cluster that the controllers stand in for. As in a real cluster, the components
//! own the fields that the controllers write.

use kube_client::api::{PatchParams, PostParams};

pub(crate) const KUBE_CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(crate) const KUBE_SCHEDULER: &str = "kube-scheduler";
pub(crate) const KUBELET: &str = "kubelet";

/// Returns the parameters of a create or an update by a component.
pub(crate) fn post(component: &str) -> PostParams {
    PostParams { field_manager: Some(component.to_owned()), ..PostParams::default() }
}

/// Returns the parameters of a patch by a component.
pub(crate) fn patch(component: &str) -> PatchParams {
    PatchParams { field_manager: Some(component.to_owned()), ..PatchParams::default() }
}
