//! The owners of a StatefulSet's claims: `persistentVolumeClaimRetentionPolicy`.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::Resource;

use super::identity;
use crate::adoption;

/// The claims that are deleted with the set, and the claims that are deleted on a scale-down.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Policy {
    delete_with_set: bool,
    delete_when_scaled: bool,
}

impl Policy {
    fn of(set: &StatefulSet) -> Self {
        let policy =
            set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
        let deletes = |policy: Option<&String>| policy.is_some_and(|policy| policy == "Delete");
        Self {
            delete_with_set: deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
            delete_when_scaled: deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
        }
    }
}

/// The needed change of a claim's owners.
#[derive(Debug, PartialEq)]
pub(super) enum Owners {
    /// The owners agree with the policy.
    UpToDate,
    /// Replace them.
    Replace(Vec<OwnerReference>),
}

/// Returns whether another controller owns the claim. The policy does not apply to such a claim.
pub(super) fn has_other_controller(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> bool {
    let policy = Policy::of(set);
    (policy.delete_with_set || policy.delete_when_scaled)
        && owners(claim).iter().any(|reference| match (refers(reference, set), refers(reference, pod)) {
            (true, _) => Some(&reference.uid) != set.metadata.uid.as_ref(),
            (_, true) => Some(&reference.uid) != pod.metadata.uid.as_ref(),
            _ => reference.controller == Some(true),
        })
}

/// Returns whether the claim belongs to an earlier pod of the same name, and is about to be collected with
/// that pod.
pub(super) fn is_stale(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> bool {
    Policy::of(set).delete_when_scaled && has_stale(claim, pod)
}

/// Returns the owners that a claim of `pod` must have.
pub(super) fn wanted(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> Owners {
    if has_stale(claim, set) || has_stale(claim, pod) {
        return Owners::UpToDate;
    }
    let mut next = owners(claim).to_vec();
    let (by_set, by_pod) = (owned_by(claim, set), owned_by(claim, pod));
    next.retain(|reference| !refers(reference, set) && !refers(reference, pod));
    if has_other_controller(claim, set, pod) {
        return if by_set || by_pod { Owners::Replace(next) } else { Owners::UpToDate };
    }
    let policy = Policy::of(set);
    let scaled_down =
        identity::ordinal(pod).is_none_or(|ordinal| !identity::ordinals(set).contains(&ordinal));
    let pod_owns = policy.delete_when_scaled && scaled_down;
    let set_owns = policy.delete_with_set && !pod_owns;
    let weak = owners(claim).iter().any(|reference| {
        let ours = Some(&reference.uid) == set.metadata.uid.as_ref()
            || Some(&reference.uid) == pod.metadata.uid.as_ref();
        ours && reference.controller != Some(true)
    });
    if !weak && (by_set, by_pod) == (set_owns, pod_owns) {
        return Owners::UpToDate;
    }
    next.extend(adoption::controller_reference(set).filter(|_| set_owns));
    next.extend(adoption::controller_reference(pod).filter(|_| pod_owns));
    Owners::Replace(next)
}

fn owners(claim: &PersistentVolumeClaim) -> &[OwnerReference] {
    claim.metadata.owner_references.as_deref().unwrap_or_default()
}

/// Returns whether a reference names this kind and name, with any uid.
fn refers<K: Resource<DynamicType = ()>>(reference: &OwnerReference, owner: &K) -> bool {
    reference.kind == K::kind(&())
        && reference.api_version == K::api_version(&())
        && Some(&reference.name) == owner.meta().name.as_ref()
}

fn owned_by<K: Resource<DynamicType = ()>>(claim: &PersistentVolumeClaim, owner: &K) -> bool {
    owners(claim).iter().any(|reference| Some(&reference.uid) == owner.meta().uid.as_ref())
}

fn has_stale<K: Resource<DynamicType = ()>>(claim: &PersistentVolumeClaim, owner: &K) -> bool {
    let found = owners(claim).iter().find(|reference| refers(reference, owner));
    found.is_some_and(|reference| Some(&reference.uid) != owner.meta().uid.as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owner_kinds(deleted: &str, scaled: &str, ordinal: i32) -> Vec<String> {
        let set: StatefulSet = serde_json::from_value(json!({
            "metadata": {"name": "web", "uid": "s"},
            "spec": {"replicas": 2, "selector": {}, "template": {},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}},
        }))
        .unwrap();
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"name": format!("web-{ordinal}"), "uid": "p"}}))
                .unwrap();
        let claim: PersistentVolumeClaim =
            serde_json::from_value(json!({"metadata": {"name": "data-web-0"}})).unwrap();
        match wanted(&claim, &set, &pod) {
            Owners::UpToDate => Vec::new(),
            Owners::Replace(owners) => owners.into_iter().map(|owner| owner.kind).collect(),
        }
    }

    #[test]
    fn the_policy_chooses_the_owner() {
        assert_eq!(owner_kinds("Retain", "Retain", 0), Vec::<String>::new());
        assert_eq!(owner_kinds("Delete", "Retain", 0), ["StatefulSet"]);
        assert_eq!(owner_kinds("Delete", "Retain", 5), ["StatefulSet"]);
        assert_eq!(owner_kinds("Retain", "Delete", 0), Vec::<String>::new());
        assert_eq!(owner_kinds("Retain", "Delete", 5), ["Pod"]);
        assert_eq!(owner_kinds("Delete", "Delete", 0), ["StatefulSet"]);
        assert_eq!(owner_kinds("Delete", "Delete", 5), ["Pod"]);
    }
}
