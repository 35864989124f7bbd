//! Applies manifests to a cluster, and installs CRDs.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::{
    Client,
    api::{Api, Patch, PatchParams},
    discovery,
};
use kube_core::{DynamicObject, GroupVersionKind};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use windlass_runtime::{Error, Result};

/// The field manager of what is applied, as kubectl's.
const FIELD_MANAGER: &str = "windlass-dev";

/// The limit for the server to serve a new CRD.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// Applies CRDs, by server-side apply, waits until their resources are served, and returns their names, sorted. Objects of CRDs that exist
/// already are kept.
///
/// A derived CRD has one version; those of a kind are [merged](windlass_codegen::cluster_definitions) into one.
///
/// # Errors
/// The versions of a kind contradict each other, or the server refused a CRD, or did not serve it within 30 s.
pub async fn install_crds(client: &Client, crds: &[CustomResourceDefinition]) -> Result<Vec<String>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let doing = |name: &str, error: Error| error.while_doing(format_args!("installing the CRD {name}"));
    let mut names = Vec::new();
    for crd in windlass_codegen::cluster_definitions(crds).map_err(Error::other)? {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let applied = definitions.patch(&name, &parameters(), &Patch::Apply(crd)).await;
        applied.map_err(|error| doing(&name, error.into()))?;
        names.push(name);
    }
    for name in &names {
        timeout(ESTABLISHED_WITHIN, established(&definitions, name))
            .await
            .unwrap_or_else(|_| Err(Error::other(format!("not established within {ESTABLISHED_WITHIN:?}"))))
            .map_err(|error| doing(name, error))?;
    }
    Ok(names)
}

async fn established(definitions: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
    loop {
        let conditions = definitions.get(name).await?.status.and_then(|status| status.conditions);
        if conditions.into_iter().flatten().any(|c| c.type_ == "Established" && c.status == "True") {
            return Ok(());
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Applies the documents of a YAML text in their order, by server-side apply, and returns what was applied, as `pod/web`.
///
/// An object without a namespace is applied to the client's default namespace, if its kind is in namespaces.
///
/// # Errors
/// The text is not YAML, a document is not an object with `apiVersion`, `kind` and `metadata.name`, or the server refused it. The documents
/// before it are applied.
pub async fn apply_manifests(client: &Client, yaml: &str) -> Result<Vec<String>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).map_err(Error::other)?;
    let mut applied = Vec::new();
    for document in documents {
        if !document.is_null() {
            applied.push(apply(client, &document).await?);
        }
    }
    Ok(applied)
}

async fn apply(client: &Client, document: &Value) -> Result<String> {
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
    objects.patch(name, &parameters(), &apply).await.map_err(|error| doing(error.into()))?;
    Ok(format!("{}/{name}", types.kind.to_lowercase()))
}

fn parameters() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}
