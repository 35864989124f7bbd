//! Deletes the contents of a namespace and counts the remaining objects.

use std::time::Duration;

use futures::stream::{self, StreamExt};
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, ListParams, PartialObjectMeta, PropagationPolicy};
use kube_core::DynamicObject;
use windlass_runtime::client::path_segment;
use windlass_runtime::{Error, Result};

use super::content_status::ContentStatus;
use crate::resources::{self, Resource};

/// How many resources are deleted concurrently.
const CONCURRENCY: usize = 8;
/// The resource of pods, in the form of a namespace's conditions.
const PODS: &str = "pods.";

/// Deletes the objects of the namespace once, and returns the remaining objects. While pods remain, all other
/// objects stay: pods that are still running may need them (KEP-5080).
pub(super) async fn delete_all_content(client: &Client, namespace: &str) -> ContentStatus {
    let mut content = ContentStatus::default();
    let found = match resources::discover(client).await {
        Ok(found) => found,
        Err(error) => {
            content.discovery_failure = Some(error.to_string());
            return content;
        }
    };
    let deletable = found.into_iter().filter(|resource| resource.namespaced && resource.deletable);
    let (pods, others): (Vec<_>, Vec<_>) = deletable.partition(|resource| resource.name() == PODS);
    for resources in [pods, others] {
        delete_resources(client, namespace, resources, &mut content).await;
        if !content.remaining.is_empty() {
            break;
        }
    }
    content
}

/// Deletes the objects of some resources, and records the remaining objects.
async fn delete_resources(
    client: &Client,
    namespace: &str,
    resources: Vec<Resource>,
    content: &mut ContentStatus,
) {
    let mut emptied = stream::iter(resources)
        .map(|resource| async move {
            let left = delete_objects(client, namespace, &resource).await;
            (resource, left)
        })
        .buffered(CONCURRENCY);
    while let Some((resource, left)) = emptied.next().await {
        match left {
            Ok(left) => count_remaining(content, &resource, &left),
            // The CRD was deleted meanwhile, together with all objects.
            Err(error) if error.is_not_found() => {}
            Err(error) => content.failures.push(format!("{}: {error}", resource.name())),
        }
    }
}

type Remaining = Vec<PartialObjectMeta<DynamicObject>>;

async fn delete_objects(client: &Client, namespace: &str, resource: &Resource) -> Result<Remaining> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource.api);
    let all = ListParams::default();
    let there = api.list_metadata(&all).await.map_err(Error::from)?.items;
    if there.iter().all(|object| object.metadata.deletion_timestamp.is_some()) {
        return Ok(there);
    }
    let background =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    if resource.collection_deletable {
        api.delete_collection(&background, &all).await.map_err(Error::from)?;
    } else {
        for object in there.iter().filter(|object| object.metadata.deletion_timestamp.is_none()) {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            match api.delete(&path_segment(name)?, &background).await.map_err(Error::from) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
    }
    Ok(api.list_metadata(&all).await.map_err(Error::from)?.items)
}

fn count_remaining(content: &mut ContentStatus, resource: &Resource, left: &Remaining) {
    if left.is_empty() {
        return;
    }
    content.remaining.insert(resource.name(), left.len());
    for object in left {
        for finalizer in object.metadata.finalizers.iter().flatten() {
            *content.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        let grace =
            object.metadata.deletion_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        content.grace = content.grace.max(Duration::from_secs(grace.unwrap_or(0)));
    }
}
