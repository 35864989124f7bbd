//! Removes the tracking finalizer of pods.

use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{Api, Patch};
use kube_core::{Resource, ResourceExt};
use serde_json::{Value, json};
use windlass_runtime::{Context, Error, Object, Result};

use super::pod::{self, TRACKING};
use crate::component::{self, KUBE_CONTROLLER_MANAGER};

/// Removes the finalizer of an existing pod that has the finalizer.
pub(super) async fn release<K>(cx: &Context<K>, found: &Pod) -> Result<()>
where
    K: Object + Resource<DynamicType = ()>,
{
    if !pod::is_tracked(found) {
        return Ok(());
    }
    remove(cx, found, json!({ "uid": found.uid() })).await
}

/// Removes the finalizer of a pod, unless the pod has changed: a Job may have adopted the pod.
pub(super) async fn release_unchanged(cx: &Context<Pod>, found: &Pod) -> Result<()> {
    remove(cx, found, json!({ "uid": found.uid(), "resourceVersion": found.resource_version() })).await
}

async fn remove<K>(cx: &Context<K>, found: &Pod, mut metadata: Value) -> Result<()>
where
    K: Object + Resource<DynamicType = ()>,
{
    let pods: Api<Pod> = Api::namespaced(cx.client().clone(), &found.namespace().unwrap_or_default());
    metadata["$deleteFromPrimitiveList/finalizers"] = json!([TRACKING]);
    let patch = Patch::Strategic(json!({ "metadata": metadata }));
    match pods
        .patch(&found.name_any(), &component::patch(KUBE_CONTROLLER_MANAGER), &patch)
        .await
        .map_err(Error::from)
    {
        Err(error) if !(error.is_not_found() || error.is_conflict()) => Err(error),
        _ => Ok(()),
    }
}
