//! Prunes the objects of earlier deployments that the project does not have any more.

use std::collections::BTreeSet;

use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PropagationPolicy, ResourceExt};
use windlass_runtime::client::path_segment;

use super::apply::{Applied, Mode};
use super::kinds::{Kind, Resource, Resources, shown};
use super::{KINDS, Target};
use crate::error::Result;
use crate::output::Output;

/// An object in a cluster.
pub(crate) struct Found {
    pub(super) kind: Kind,
    pub(super) resource: Resource,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl Found {
    /// Returns the object for a person, as `role.rbac.authorization.k8s.io/web in namespace ops`.
    pub(super) fn shown(&self) -> String {
        let shown = shown(&self.kind, &self.name);
        match &self.namespace {
            Some(namespace) => format!("{shown} in namespace {namespace}"),
            None => shown,
        }
    }

    /// Deletes the object. The garbage collector deletes the objects that the object owns.
    pub(super) async fn delete(&self, client: &Client) -> Result<()> {
        let objects = self.resource.objects(client, self.namespace.as_deref());
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        match objects.delete(&path_segment(&self.name)?, &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(format!("deleting {}: {error}", self.shown()).into()),
        }
    }
}

/// Deletes the objects of earlier deployments to the same namespace that have not been applied now. CRDs and namespaces stay.
///
/// `earlier` are the kinds that [`deployed_kinds`] has returned before the apply.
pub(crate) async fn prune(
    client: &Client,
    target: &Target,
    earlier: &BTreeSet<Kind>,
    applied: &Applied,
    mode: Mode,
    out: &mut Output,
) -> Result<()> {
    let mut kinds = earlier.clone();
    kinds.extend(applied.keys.iter().map(|(kind, ..)| kind.clone()));
    for found in labelled(client, target, &kinds).await? {
        let is_kept = applied.keys.iter().any(|(kind, namespace, name)| {
            // Versions of a kind are one resource.
            (&kind.group, &kind.kind) == (&found.kind.group, &found.kind.kind)
                && *name == found.name
                && (found.namespace.is_none() || *namespace == found.namespace)
        });
        if is_kept {
            continue;
        }
        if mode == Mode::Apply {
            found.delete(client).await?;
            out.line(format_args!("pruned: {}", found.shown()));
        } else {
            out.line(format_args!("would be pruned: {}", found.shown()));
        }
    }
    Ok(())
}

/// Returns the kinds that earlier deployments of the project may have left: the kinds of `windlass manifests`, and the kinds in the
/// annotations of the project's Deployments.
pub(crate) async fn deployed_kinds(client: &Client, target: &Target) -> Result<BTreeSet<Kind>> {
    let mut kinds: BTreeSet<Kind> = Kind::generated().into_iter().collect();
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = Api::all(client.clone());
    let listed = deployments.list_metadata(&ListParams::default().labels(&target.selector())).await?;
    for deployment in listed {
        let listed = deployment.annotations().get(KINDS).map(String::as_str).unwrap_or_default();
        kinds.extend(listed.split(',').filter_map(Kind::parse).filter(Kind::is_prunable));
    }
    Ok(kinds)
}

/// Returns the objects of these kinds that belong to the deployment. Deployments of the project in other namespaces keep their objects.
pub(super) async fn labelled(client: &Client, target: &Target, kinds: &BTreeSet<Kind>) -> Result<Vec<Found>> {
    let mut resources = Resources::new(client);
    let mut found = Vec::new();
    for kind in kinds {
        let Some(resource) = resources.get(kind).await? else { continue };
        let objects: Api<DynamicObject> = resource.objects(client, None);
        let listed = objects.list_metadata(&ListParams::default().labels(&target.selector())).await;
        let listed = listed.map_err(|error| format!("listing the objects of kind {kind}: {error}"))?;
        // An object with an owner has copies of the owner's labels, and is deleted with the owner.
        let own =
            listed.into_iter().filter(|object| object.owner_references().is_empty() && target.owns(object));
        found.extend(own.map(|object| Found {
            kind: kind.clone(),
            resource: resource.clone(),
            namespace: object.namespace(),
            name: object.name_any(),
        }));
    }
    Ok(found)
}
