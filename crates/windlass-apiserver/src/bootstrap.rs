//! The objects that a server makes for itself.

use std::sync::Arc;

use serde_json::json;

use crate::api::Api;
use crate::store::ResourceId;
use crate::wire::ApiError;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates them in an empty store.
pub(crate) fn create(api: &Arc<Api>) -> Result<(), ApiError> {
    let namespaces = ResourceId::new("", "namespaces");
    for name in NAMESPACES {
        let object = json!({
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": api.env.uid(),
                "creationTimestamp": api.env.now_rfc3339(),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        api.store
            .commit(&namespaces, name, None, Some(object))
            .map_err(|_| ApiError::internal(format!("namespace {name} is there already")))?;
    }
    Ok(())
}
