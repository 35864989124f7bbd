//! Applies manifests to a cluster.

use kube_client::{
    Client,
    api::{Api, Patch, PatchParams},
    discovery,
};
use kube_core::{DynamicObject, GroupVersionKind};
use serde_json::Value;
use windlass_runtime::{Error, Result, crds::FIELD_MANAGER};

/// Applies the documents of a YAML text in order, by server-side apply, and returns the names of the applied
/// objects, such as `pod/web`.
///
/// A namespaced object without a namespace is applied to the client's default namespace.
///
/// # Errors
/// The text is not YAML, a document is not an object with `apiVersion`, `kind` and `metadata.name`, or the
/// server refused an object. The documents before the error are applied.
pub async fn apply_manifests(client: &Client, yaml: &str) -> Result<Vec<String>> {
    let mut applied = Vec::new();
    for document in read_manifests(yaml)? {
        let object = apply_manifest(client, &document, &parameters()).await?.1;
        let kind = object.types.unwrap_or_default().kind.to_lowercase();
        applied.push(format!("{kind}/{}", object.metadata.name.unwrap_or_default()));
    }
    Ok(applied)
}

/// Returns the documents of a YAML text, without empty documents.
///
/// # Errors
/// The text is not YAML.
pub fn read_manifests(yaml: &str) -> Result<Vec<Value>> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(yaml).map_err(Error::other)?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// Applies one document by server-side apply, and returns the object with the access to its kind.
///
/// An object without a namespace is applied to the client's default namespace, if its kind is in namespaces.
///
/// # Errors
/// The document is not an object with `apiVersion`, `kind` and `metadata.name`, or the server refused the object.
pub async fn apply_manifest(
    client: &Client,
    document: &Value,
    parameters: &PatchParams,
) -> Result<(Api<DynamicObject>, DynamicObject)> {
    let object: DynamicObject = serde_json::from_value(document.clone()).map_err(Error::other)?;
    let (Some(types), Some(name)) = (&object.types, &object.metadata.name) else {
        return Err(Error::other("a document has no apiVersion, kind or metadata.name"));
    };
    let doing = |error: Error| error.while_doing(format_args!("applying {} {name}", types.kind));
    let gvk = GroupVersionKind::try_from(types).map_err(|error| doing(Error::other(error)))?;
    let (resource, capabilities) =
        discovery::pinned_kind(client, &gvk).await.map_err(|error| doing(error.into()))?;
    let objects: Api<DynamicObject> = match (&object.metadata.namespace, capabilities.scope) {
        (_, discovery::Scope::Cluster) => Api::all_with(client.clone(), &resource),
        (Some(namespace), _) => Api::namespaced_with(client.clone(), namespace, &resource),
        (None, _) => Api::default_namespaced_with(client.clone(), &resource),
    };
    let apply = Patch::Apply(document);
    let mut applied = objects.patch(name, parameters, &apply).await.map_err(|error| doing(error.into()))?;
    applied.types.get_or_insert_with(|| types.clone());
    Ok((objects, applied))
}

fn parameters() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}
