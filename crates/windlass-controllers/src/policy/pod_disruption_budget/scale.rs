//! How many pods the controllers of pods ask for.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_client::api::{Api, DynamicObject};
use kube_client::discovery;
use kube_core::{GroupVersionKind, ResourceExt};
use windlass_runtime::{Context, Error, ObjectKey, Result};

use super::plan::Scale;
use crate::adoption;

/// The number of pods that a controller asks for, by the controller's uid.
type ByOwner = BTreeMap<String, i32>;

/// Returns the sum of the replicas of the pods' controllers.
///
/// # Errors
/// The controller of a pod is unknown.
pub(super) async fn of_owners(found: &[Arc<Pod>], cx: &Context<PodDisruptionBudget>) -> Result<Scale> {
    let mut by_owner = ByOwner::new();
    let mut unmanaged = false;
    for pod in found {
        let Some(owner) = adoption::controller_of(&**pod) else {
            unmanaged = true;
            continue;
        };
        if by_owner.contains_key(&owner.uid) {
            continue;
        }
        let namespace = pod.namespace().unwrap_or_default();
        let Some((uid, replicas)) = find(owner, &namespace, cx).await? else {
            return Err(Error::other(format!("found no controllers for pod {:?}", pod.name_any())));
        };
        by_owner.insert(uid, replicas);
    }
    Ok(Scale { expected: by_owner.values().sum(), unmanaged })
}

async fn find(
    owner: &OwnerReference,
    namespace: &str,
    cx: &Context<PodDisruptionBudget>,
) -> Result<Option<(String, i32)>> {
    let key = ObjectKey::namespaced(namespace, &owner.name);
    let group = owner.api_version.split('/').next().unwrap_or_default();
    let found = match (group, owner.kind.as_str()) {
        ("apps", "ReplicaSet") => return replica_set(owner, &key, cx),
        ("apps", "StatefulSet") => cx
            .lister::<StatefulSet>()?
            .get(&key)?
            .map(|set| (set.uid(), set.spec.as_ref().and_then(|spec| spec.replicas))),
        ("v1", "ReplicationController") => cx
            .lister::<ReplicationController>()?
            .get(&key)?
            .map(|set| (set.uid(), set.spec.as_ref().and_then(|spec| spec.replicas))),
        _ => return by_scale(owner, namespace, cx).await,
    };
    let same = found.filter(|(uid, _)| uid.as_ref() == Some(&owner.uid));
    Ok(same.map(|(uid, replicas)| (uid.unwrap_or_default(), replicas.unwrap_or(1))))
}

/// Returns the scale of a ReplicaSet, or the scale of the Deployment that controls the ReplicaSet.
fn replica_set(
    owner: &OwnerReference,
    key: &ObjectKey,
    cx: &Context<PodDisruptionBudget>,
) -> Result<Option<(String, i32)>> {
    let Some(set) = cx.lister::<ReplicaSet>()?.get(key)?.filter(|set| set.uid().as_ref() == Some(&owner.uid))
    else {
        return Ok(None);
    };
    if let Some(parent) = adoption::controller_of(&*set).filter(|parent| parent.kind == "Deployment") {
        let key = ObjectKey::namespaced(key.namespace().unwrap_or_default(), &parent.name);
        let found = cx.lister::<Deployment>()?.get(&key)?;
        let found = found.filter(|found| found.uid().as_ref() == Some(&parent.uid));
        let replicas = |found: &Deployment| found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        return Ok(found.map(|found| (parent.uid.clone(), replicas(&found))));
    }
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    Ok(Some((owner.uid.clone(), replicas)))
}

/// Reads the subresource `scale` of any other controller.
async fn by_scale(
    owner: &OwnerReference,
    namespace: &str,
    cx: &Context<PodDisruptionBudget>,
) -> Result<Option<(String, i32)>> {
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    let kind = GroupVersionKind::gvk(group, version, &owner.kind);
    let (resource, capabilities) = match discovery::pinned_kind(cx.client(), &kind).await {
        Ok(found) => found,
        Err(error) => return Err(Error::from(error)),
    };
    let scales = capabilities.subresources.iter().any(|(subresource, _)| subresource.plural == "scale");
    if !scales {
        let plural = format!("{}.{}", resource.plural, group);
        return Err(Error::other(format!("{plural} does not implement the scale subresource")));
    }
    let api: Api<DynamicObject> = Api::namespaced_with(cx.client().clone(), namespace, &resource);
    let object = match api.get_opt(&owner.name).await.map_err(Error::from)? {
        Some(object) if object.uid().as_ref() == Some(&owner.uid) => object,
        _ => return Ok(None),
    };
    let scale = api.get_scale(&object.name_any()).await.map_err(Error::from)?;
    Ok(Some((owner.uid.clone(), scale.spec.and_then(|spec| spec.replicas).unwrap_or(0))))
}
