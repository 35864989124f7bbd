//! Adoption and release of objects by a controller that selects objects by label, like client-go's
//! `ControllerRefManager`.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube_client::api::{Api, Patch};
use kube_core::{NamespaceResourceScope, Resource, ResourceExt};
use serde_json::{Value, json};
use windlass_runtime::{Context, Error, HandlerContext, ObjectKey, Result};

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
    /// The finalizer that adopted objects get and released objects lose.
    finalizer: Option<&'static str>,
}

/// Returns the owners that may adopt an object which has no controller: the owners in the namespace of the object that select the object.
pub(crate) fn adopters<O, K>(
    object: &K,
    cx: &HandlerContext,
    selects: impl Fn(&O) -> bool,
) -> Result<Vec<ObjectKey>>
where
    O: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
    K: Resource,
{
    let Some(namespace) = object.namespace().filter(|_| controller_of(object).is_none()) else {
        return Ok(Vec::new());
    };
    let owners = cx.lister::<O>()?.namespace(&namespace).all()?;
    let key = |owner: &O| ObjectKey::namespaced(&namespace, &owner.name_any());
    Ok(owners.iter().filter(|owner| selects(owner)).map(key).collect())
}

/// Classifies objects for the owner with this uid.
pub(crate) fn classify<K: Resource>(
    objects: impl IntoIterator<Item = Arc<K>>,
    selector: &LabelSelector,
    uid: &str,
) -> Classified<K> {
    let mut classified =
        Classified { owned: Vec::new(), adopt: Vec::new(), release: Vec::new(), finalizer: None };
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
    /// Sets a finalizer that adopted objects get and released objects lose.
    pub(crate) fn with_finalizer(mut self, finalizer: &'static str) -> Self {
        self.finalizer = Some(finalizer);
        self
    }

    /// Adopts and releases objects, and returns the owned objects.
    ///
    /// A terminating owner adopts and releases no objects.
    ///
    /// # Errors
    /// The live owner is gone, terminating or another object, or another controller adopted an object first.
    pub(crate) async fn adopt_and_release<O>(self, owner: &O, cx: &Context<O>) -> Result<Vec<Arc<K>>>
    where
        O: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let mut owned = self.owned;
        if owner.meta().deletion_timestamp.is_some() {
            return Ok(owned);
        }
        if let Some(reference) = controller_reference(owner).filter(|_| !self.adopt.is_empty()) {
            check_live(owner, cx).await?;
            for orphan in self.adopt {
                owned.extend(adopt(cx, &*orphan, &reference, self.finalizer).await?.map(Arc::new));
            }
        }
        for released in self.release {
            release(cx, &*released, owner.meta().uid.as_deref(), self.finalizer).await?;
        }
        Ok(owned)
    }
}

/// Fails if the owner on the server is another object or is terminating: the cache may be stale.
async fn check_live<O>(owner: &O, cx: &Context<O>) -> Result<()>
where
    O: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<O> = Api::namespaced(cx.client().clone(), &owner.namespace().unwrap_or_default());
    let name = owner.name_any();
    let live = api.get_metadata_opt(&name).await.map_err(Error::from)?;
    let live = live.filter(|live| live.metadata.uid == owner.meta().uid);
    if live.is_some_and(|live| live.metadata.deletion_timestamp.is_none()) {
        return Ok(());
    }
    let kind = O::kind(&());
    Err(Error::other(format!(
        "{kind} {name} is gone or terminating, and adopts no objects: wait for the cache"
    )))
}

/// Adopts an object. Returns `None` if the object is gone.
async fn adopt<K, O>(
    cx: &Context<O>,
    orphan: &K,
    reference: &OwnerReference,
    finalizer: Option<&str>,
) -> Result<Option<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let mut metadata = json!({ "uid": orphan.uid(), "ownerReferences": [reference] });
    if let Some(finalizer) = finalizer {
        metadata["finalizers"] = json!([finalizer]);
    }
    match patch(cx, orphan, metadata).await {
        Err(error) if error.is_not_found() => Ok(None),
        patched => patched.map(Some),
    }
}

/// Releases an object from the owner with this uid. Ignores an object that is gone, or that has no such owner.
async fn release<K, O>(
    cx: &Context<O>,
    released: &K,
    owner: Option<&str>,
    finalizer: Option<&str>,
) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let mut metadata =
        json!({ "uid": released.uid(), "ownerReferences": [{ "$patch": "delete", "uid": owner }] });
    if let Some(finalizer) = finalizer {
        metadata["$deleteFromPrimitiveList/finalizers"] = json!([finalizer]);
    }
    match patch(cx, released, metadata).await {
        Err(error) if !(error.is_not_found() || error.is_conflict() || error.is_invalid()) => Err(error),
        _ => Ok(()),
    }
}

async fn patch<K, O>(cx: &Context<O>, object: &K, metadata: Value) -> Result<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(cx.client().clone(), &object.namespace().unwrap_or_default());
    let patch = Patch::Strategic(json!({ "metadata": metadata }));
    api.patch(&object.name_any(), &component::patch(KUBE_CONTROLLER_MANAGER), &patch)
        .await
        .map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use k8s_openapi::api::core::v1::Pod;
    use kube_core::ObjectMeta;
    use serde_json::{Value, json};
    use windlass_test::fake::FakeCluster;

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

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    /// Returns a cluster with a ReplicaSet, and an orphan as the cache has seen the orphan.
    fn cluster() -> (FakeCluster, ReplicaSet, Arc<Pod>) {
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}});
        let set = json!({"metadata": {"name": "web", "namespace": "default", "uid": "me"}, "spec": spec});
        let set: ReplicaSet = serde_json::from_value(set).unwrap();
        let mut orphan = Pod::clone(&pod("orphan", "web", None, false));
        orphan.metadata.namespace = Some("default".to_owned());
        let cluster = FakeCluster::builder().object(set).object(orphan).build();
        let set = cluster.get::<ReplicaSet>(&key("web")).unwrap();
        let orphan = Arc::new(cluster.get::<Pod>(&key("orphan")).unwrap());
        (cluster, set, orphan)
    }

    async fn claim(cluster: &FakeCluster, set: &ReplicaSet, orphan: Arc<Pod>) -> Result<Vec<Arc<Pod>>> {
        let selector = set.spec.clone().unwrap().selector;
        let classified = classify([orphan], &selector, set.metadata.uid.as_ref().unwrap());
        classified.adopt_and_release(set, &cluster.context::<ReplicaSet>()).await
    }

    fn owners(cluster: &FakeCluster) -> Vec<String> {
        let pod = cluster.get::<Pod>(&key("orphan")).unwrap();
        pod.owner_references().iter().map(|owner| owner.uid.clone()).collect()
    }

    #[tokio::test]
    async fn an_adopted_object_keeps_the_owners_that_the_cache_has_not_seen() {
        let (cluster, set, orphan) = cluster();
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other"});
        cluster.update::<Pod>(&key("orphan"), |pod| {
            pod.owner_references_mut().push(serde_json::from_value(other).unwrap());
        });
        let owned = claim(&cluster, &set, orphan).await.unwrap();
        assert_eq!(owned.len(), 1);
        let mut owners = owners(&cluster);
        owners.sort_unstable();
        assert_eq!(owners, [set.uid().unwrap(), "other".to_owned()]);
    }

    #[tokio::test]
    async fn an_owner_that_was_replaced_or_terminates_adopts_nothing() {
        let (cluster, set, orphan) = cluster();
        let earlier = ReplicaSet {
            metadata: ObjectMeta { uid: Some("earlier".to_owned()), ..set.metadata.clone() },
            ..set.clone()
        };
        claim(&cluster, &earlier, Arc::clone(&orphan)).await.unwrap_err();
        cluster.update::<ReplicaSet>(&key("web"), |set| set.finalizers_mut().push("a/b".to_owned()));
        cluster.delete::<ReplicaSet>(&key("web"));
        claim(&cluster, &set, orphan).await.unwrap_err();
        assert_eq!(owners(&cluster), Vec::<String>::new());
    }
}
