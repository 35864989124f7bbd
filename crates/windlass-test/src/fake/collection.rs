//! Collections: the objects that a list, or a deletion of many objects, selects.

use kube_core::ApiResource;
use serde_json::{Value, json};
use windlass_runtime::Selector;

use super::{
    request::ApiRequest,
    selector::FieldSelector,
    status::{StatusResult, bad_request},
    storage::Storage,
};

/// Returns the objects of the collection that the selectors of the request match.
pub(super) fn select(storage: &Storage, request: &ApiRequest) -> StatusResult<Vec<Value>> {
    let labels = request.parameter("labelSelector").unwrap_or_default();
    let labels: Selector = labels.parse().map_err(|error| bad_request(format!("{error}")))?;
    let fields = FieldSelector::parse(request.parameter("fieldSelector").unwrap_or_default())?;
    let namespace = request.namespace.as_deref();
    let selected = storage.list(&request.resource).filter(|(key, object)| {
        (namespace.is_none() || key.namespace() == namespace)
            && labels.matches_labels(|label| object["metadata"]["labels"][label].as_str())
            && fields.matches(object)
    });
    Ok(selected.map(|(_, object)| object.clone()).collect())
}

/// Makes a list of objects.
pub(super) fn list_object(kind: &ApiResource, revision: u64, items: Vec<Value>) -> Value {
    let api_version = if kind.api_version.is_empty() { "v1" } else { &kind.api_version };
    json!({
        "apiVersion": api_version,
        "kind": format!("{}List", kind.kind),
        "metadata": { "resourceVersion": revision.to_string() },
        "items": items,
    })
}
