//! Adoption and release of objects by a controller that selects objects by label, like client-go's
//! `ControllerRefManager`.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube_client::api::{Api, Patch};
use kube_core::{NamespaceResourceScope, Resource, ResourceExt};
use serde_json::json;
use windlass_runtime::{Context, Error, Result};

use crate::component::{self, KUBE_CONTROLLER_MANAGER};
use crate::labels::selects;

/// The objects of a namespace that concern an owner.
#[derive(Debug)]
pub(crate) struct Classified<K> {
    pub owned: Vec<Arc<K>>,
    /// Objects that the selector matches and that have no controller.
    pub adopt: Vec<Arc<K>>,
    /// Objects that the owner controls and that the selector no longer matches.
    pub release: Vec<Arc<K>>,
}

/// Classifies objects for the owner with this uid.
pub(crate) fn classify<K: Resource>(
    objects: impl IntoIterator<Item = Arc<K>>,
    selector: &LabelSelector,
    uid: &str,
) -> Classified<K> {
    let mut classified = Classified { owned: Vec::new(), adopt: Vec::new(), release: Vec::new() };
    for object in objects {
        let meta = object.meta();
        let controller = controller_of(&*object).map(|owner| owner.uid == uid);
        let selected = selects(selector, meta.labels.as_ref());
        match (controller, selected) {
            (Some(true), true) => classified.owned.push(object),
            (Some(true), false) => classified.release.push(object),
            (None, true) if meta.deletion_timestamp.is_none() => classified.adopt.push(object),
            _ => {}
        }
    }
    classified
}

/// Returns the owner reference that has `controller: true`.
pub(crate) fn controller_of(object: &impl Resource) -> Option<&OwnerReference> {
    object.meta().owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Returns a reference that makes `owner` the controller of an object.
pub(crate) fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    let reference = owner.controller_owner_ref(&())?;
    Some(OwnerReference { block_owner_deletion: Some(true), ..reference })
}

impl<K> Classified<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug,
{
    /// Adopts and releases objects, and returns the owned objects.
    ///
    /// A terminating owner adopts no objects.
    pub(crate) async fn adopt_and_release<O>(self, owner: &O, cx: &Context<O>) -> Result<Vec<Arc<K>>>
    where
        O: Resource<DynamicType = ()>,
    {
        let mut owned = self.owned;
        if let Some(reference) =
            controller_reference(owner).filter(|_| owner.meta().deletion_timestamp.is_none())
        {
            for orphan in self.adopt {
                let mut owners = orphan.meta().owner_references.clone().unwrap_or_default();
                owners.push(reference.clone());
                owned.extend(write_owners(cx, &*orphan, owners).await?.map(Arc::new));
            }
        }
        for released in self.release {
            let mut owners = released.meta().owner_references.clone().unwrap_or_default();
            owners.retain(|reference| Some(&reference.uid) != owner.meta().uid.as_ref());
            write_owners(cx, &*released, owners).await?;
        }
        Ok(owned)
    }
}

async fn write_owners<K, O>(cx: &Context<O>, object: &K, owners: Vec<OwnerReference>) -> Result<Option<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(cx.client().clone(), &object.namespace().unwrap_or_default());
    let patch = json!({ "metadata": { "uid": object.uid(), "ownerReferences": owners } });
    match api
        .patch(&object.name_any(), &component::patch(KUBE_CONTROLLER_MANAGER), &Patch::Merge(patch))
        .await
        .map_err(Error::from)
    {
        Ok(written) => Ok(Some(written)),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, app: &str, owner: Option<&str>, deleting: bool) -> Arc<Pod> {
        let owners: Vec<Value> = owner
            .map(|uid| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": true}))
            .into_iter()
            .collect();
        let deletion = deleting.then_some("2026-01-01T00:00:00Z");
        let metadata = json!({"name": name, "labels": {"app": app}, "ownerReferences": owners, "deletionTimestamp": deletion});
        Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
    }

    #[test]
    fn objects_are_owned_adopted_or_let_go() {
        let selector: LabelSelector = serde_json::from_value(json!({"matchLabels": {"app": "web"}})).unwrap();
        let pods = [
            pod("mine", "web", Some("me"), false),
            pod("released", "other", Some("me"), false),
            pod("orphan", "web", None, false),
            pod("going", "web", None, true),
            pod("theirs", "web", Some("you"), false),
            pod("unrelated", "other", None, false),
        ];
        let classified = classify(pods, &selector, "me");
        let names = |pods: &[Arc<Pod>]| pods.iter().map(|pod| pod.name_any()).collect::<Vec<_>>();
        assert_eq!(names(&classified.owned), ["mine"]);
        assert_eq!(names(&classified.adopt), ["orphan"]);
        assert_eq!(names(&classified.release), ["released"]);
    }
}
