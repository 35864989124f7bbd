//! One pass through a namespace: delete everything, count what is left.

use std::time::Duration;

use futures::stream::{self, StreamExt};
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, ListParams, PartialObjectMeta, PropagationPolicy};
use kube_core::DynamicObject;
use windlass_runtime::{Error, Result};

use super::progress::Sweep;
use crate::resources::{self, Resource};

/// How many resources are swept side by side.
const AT_ONCE: usize = 8;

/// Deletes all that the namespace holds, and counts what stays for now.
pub(super) async fn sweep(client: &Client, namespace: &str) -> Sweep {
    let mut sweep = Sweep::default();
    let found = match resources::discover(client).await {
        Ok(found) => found,
        Err(error) => {
            sweep.discovery_failure = Some(error.to_string());
            return sweep;
        }
    };
    let deletable = found.into_iter().filter(|resource| resource.namespaced && resource.deletable);
    let mut swept = stream::iter(deletable)
        .map(|resource| async move {
            let left = empty(client, namespace, &resource).await;
            (resource, left)
        })
        .buffered(AT_ONCE);
    while let Some((resource, left)) = swept.next().await {
        match left {
            Ok(left) => note(&mut sweep, &resource, &left),
            // Its CRD went while we were at it: nothing of it can be left.
            Err(error) if error.is_not_found() => {}
            Err(error) => sweep.failures.push(format!("{}: {error}", resource.name())),
        }
    }
    sweep
}

type Left = Vec<PartialObjectMeta<DynamicObject>>;

async fn empty(client: &Client, namespace: &str, resource: &Resource) -> Result<Left> {
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
            match api.delete(name, &background).await.map_err(Error::from) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
    }
    Ok(api.list_metadata(&all).await.map_err(Error::from)?.items)
}

fn note(sweep: &mut Sweep, resource: &Resource, left: &Left) {
    if left.is_empty() {
        return;
    }
    sweep.remaining.insert(resource.name(), left.len());
    for object in left {
        for finalizer in object.metadata.finalizers.iter().flatten() {
            *sweep.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        let grace =
            object.metadata.deletion_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        sweep.grace = sweep.grace.max(Duration::from_secs(grace.unwrap_or(0)));
    }
}
