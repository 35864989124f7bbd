//! Counts the live objects of a namespace.

use jiff::Timestamp;
use kube_client::Client;
use kube_client::api::{Api, ListParams};
use kube_core::{DynamicObject, Request};
use serde_json::Value;
use windlass_kinds::quota::{Evaluator, Quota, ResourceList};
use windlass_runtime::{Error, Result};

use crate::resources::Resource;

/// Returns the usage of a quota's resources by the objects of a resource. The list is not older than any
/// write that this client has seen.
pub(super) async fn used(
    client: &Client,
    namespace: &str,
    resource: &Resource,
    evaluator: &Evaluator,
    quota: &Quota,
    now: Timestamp,
) -> Result<ResourceList> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource.api);
    if evaluator.is_count() {
        let first = api.list_metadata(&ListParams::default().limit(1)).await.map_err(Error::from)?;
        let others = first.metadata.remaining_item_count.unwrap_or_default();
        let count = first.items.len() + usize::try_from(others).unwrap_or_default();
        return Ok(evaluator.used_by_count(quota, count));
    }
    let request = Request::new(api.resource_url()).list(&ListParams::default());
    let request = request.map_err(|error| Error::from(kube_client::Error::BuildRequest(error)))?;
    let list: Value = client.request(request).await.map_err(Error::from)?;
    let objects = list["items"].as_array().into_iter().flatten();
    Ok(evaluator.used_of(quota, objects, now))
}
