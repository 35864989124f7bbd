//! The size of an autoscaler's target.

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::CrossVersionObjectReference;
use kube_client::Client;
use kube_client::api::{Api, DynamicObject};
use kube_client::discovery;
use kube_core::{ApiResource, GroupVersionKind};
use windlass_runtime::{Error, Result};

use super::metrics::Annotations;
use super::plan::Size;
use crate::component::{self, KUBE_CONTROLLER_MANAGER};
use crate::pod_control::message_of;

/// How often a change is tried again after a conflict.
const RETRIES: usize = 5;

/// A workload with the subresource `scale`.
pub(super) struct Target {
    api: Api<DynamicObject>,
    name: String,
    scale: Scale,
}

/// Returns the resource of a kind. If the server does not serve the named version, returns the resource in the preferred version of the
/// group.
///
/// # Errors
/// The server has no such kind: the words of kube-controller-manager.
async fn resource_of(
    client: &Client,
    reference: &CrossVersionObjectReference,
) -> std::result::Result<ApiResource, String> {
    let api_version = reference.api_version.as_deref().unwrap_or("v1");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_known = matches!(
        (group, reference.kind.as_str()),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet")
            | ("", "ReplicationController" | "Pod" | "Service")
    );
    let version = if is_known { "v1" } else { version };
    let kind = GroupVersionKind::gvk(group, version, &reference.kind);
    if is_known {
        return Ok(ApiResource::from_gvk(&kind));
    }
    if let Ok((resource, _)) = discovery::pinned_kind(client, &kind).await {
        return Ok(resource);
    }
    let served = discovery::group(client, group).await.ok();
    let preferred = served.and_then(|served| served.recommended_kind(&reference.kind));
    let missing = || format!("no matches for kind {:?} in group {group:?}", reference.kind);
    preferred.map(|(resource, _)| resource).ok_or_else(missing)
}

impl Target {
    /// Reads the target of an autoscaler.
    ///
    /// # Errors
    /// The target does not exist or cannot be scaled.
    pub(super) async fn read(
        client: &Client,
        namespace: &str,
        reference: &CrossVersionObjectReference,
    ) -> std::result::Result<Self, String> {
        let resource = resource_of(client, reference).await?;
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let scale = api.get_scale(&reference.name).await.map_err(|error| message_of(&Error::from(error)))?;
        Ok(Self { api, name: reference.name.clone(), scale })
    }

    pub(super) fn size(&self) -> Size {
        let status = self.scale.status.as_ref();
        Size {
            wanted: self.scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0),
            running: status.map_or(0, |status| status.replicas),
            selector: status.and_then(|status| status.selector.clone()).unwrap_or_default(),
        }
    }

    /// Writes another size. If the target has changed since the target was read, reads the target again, at most five times.
    pub(super) async fn resize(&mut self, replicas: i32) -> Result<()> {
        for _ in 0..RETRIES {
            match self.write(replicas).await {
                Err(error) if error.is_conflict() => {
                    self.scale = self.api.get_scale(&self.name).await.map_err(Error::from)?;
                }
                outcome => return outcome,
            }
        }
        self.write(replicas).await
    }

    async fn write(&self, replicas: i32) -> Result<()> {
        let mut scale = self.scale.clone();
        scale.spec.get_or_insert_default().replicas = Some(replicas);
        let written =
            self.api.replace_scale(&self.name, &component::post(KUBE_CONTROLLER_MANAGER), &scale).await;
        written.map(drop).map_err(Error::from)
    }

    pub(super) async fn annotations(&self) -> Result<Annotations> {
        let found = self.api.get_metadata_opt(&self.name).await.map_err(Error::from)?;
        Ok(found.and_then(|found| found.metadata.annotations).unwrap_or_default())
    }
}

/// Reads the annotations of an object that a metric describes.
///
/// # Errors
/// The object does not exist.
pub(super) async fn annotations_of(
    client: &Client,
    namespace: &str,
    object: &CrossVersionObjectReference,
) -> std::result::Result<Annotations, String> {
    let resource = resource_of(client, object).await?;
    let is_namespace = resource.kind == "Namespace" && resource.group.is_empty();
    let api: Api<DynamicObject> = if is_namespace {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    };
    let name = if is_namespace { namespace } else { &object.name };
    let found = api.get_metadata(name).await.map_err(|error| message_of(&Error::from(error)))?;
    Ok(found.metadata.annotations.unwrap_or_default())
}
