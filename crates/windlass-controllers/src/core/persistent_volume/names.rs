//! The annotations of claims and volumes, and the facts that the annotations show.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube_core::ResourceExt;

/// The component that reports Events, as in kube-controller-manager.
pub(crate) const COMPONENT: &str = "persistentvolume-controller";
/// On a claim: the node that the scheduler has chosen for the first pod of the claim.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim whose binding has ended.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On a claim or volume that the controller, and not a user, has bound.
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a provisioned volume: the provisioner.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On a claim: the provisioner that is asked for a volume.
pub(crate) const ASKED_PROVISIONERS: [&str; 2] =
    ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];
/// On a claim or volume: the class, before there was a field for the class.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Returns the name of a claim's class; empty without a class.
pub(crate) fn class_of(claim: &PersistentVolumeClaim) -> &str {
    let spec = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
    claim.annotations().get(CLASS).map(String::as_str).or(spec).unwrap_or_default()
}

/// Returns whether a claim may get the default class: neither the field nor the annotation names a class. An empty name is a
/// choice: no class.
pub(crate) fn lacks_class(claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.as_ref();
    spec.is_none_or(|spec| spec.storage_class_name.is_none()) && !claim.annotations().contains_key(CLASS)
}

/// Returns the name of a volume's class; empty without a class.
pub(crate) fn class_of_volume(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
    volume.annotations().get(CLASS).map(String::as_str).or(spec).unwrap_or_default()
}

/// Returns the name of the claim's volume; empty without a volume.
pub(crate) fn volume_of(claim: &PersistentVolumeClaim) -> &str {
    claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default()
}

/// Returns whether the claim has a volume and the binding has ended.
pub(crate) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    !volume_of(claim).is_empty() && claim.annotations().contains_key(BIND_COMPLETED)
}

/// Returns whether the volume is reserved for the claim or bound to the claim.
pub(crate) fn is_reserved_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else { return false };
    let uid = reference.uid.as_deref().unwrap_or_default();
    reference.name == claim.metadata.name
        && reference.namespace == claim.metadata.namespace
        && (uid.is_empty() || Some(uid) == claim.metadata.uid.as_deref())
}
