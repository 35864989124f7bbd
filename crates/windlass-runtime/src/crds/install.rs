//! Installs CRDs like `kubectl apply --server-side`: kubectl and the commands can take turns without
//! conflicts.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::{
    Client,
    api::{Api, Patch, PatchParams},
};
use kube_core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::keep::{keep_conversion, keep_metadata};
use crate::error::{Error, Result};

/// The field manager of `kubectl apply --server-side`: a later apply with kubectl finds no fields of another manager.
pub const FIELD_MANAGER: &str = "kubectl";

/// The field managers of earlier releases. The fields are handed over to [`FIELD_MANAGER`].
const EARLIER_MANAGERS: [&str; 2] = ["windlass-dev", "windlass-webhooks"];

/// The limit for the server to serve a new CRD.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// Applies the derived CRDs of an operator, like [`install_definitions`]. The versions of a kind are
/// [merged](windlass_codegen::cluster_definitions) into one CRD.
///
/// # Errors
/// The versions of a kind contradict each other, or see [`install_definitions`].
pub async fn install_crds(client: &Client, crds: &[CustomResourceDefinition]) -> Result<Vec<String>> {
    install_definitions(client, &windlass_codegen::cluster_definitions(crds).map_err(Error::other)?).await
}

/// Applies CRDs by server-side apply, waits until the server serves the resources, and returns the names of
/// the CRDs. Objects of existing CRDs are kept.
///
/// The field manager is the field manager of `kubectl apply --server-side`. Labels and annotations that
/// kubectl applied stay. A conversion webhook stays, too, while a kind has several versions: without the
/// webhook, fields of stored objects would be lost. A definition with a conversion replaces a webhook behind
/// a service, but not a webhook at a URL, where `windlass run` serves.
///
/// # Errors
/// The server refused a CRD, or did not serve it within 30 s.
pub async fn install_definitions(client: &Client, crds: &[Value]) -> Result<Vec<String>> {
    let definitions = definitions(client);
    let doing = |name: &str, error: Error| error.while_doing(format_args!("installing the CRD {name}"));
    let mut names = Vec::new();
    for crd in crds {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let installed = install(&definitions, &name, crd.clone()).await;
        installed.map_err(|error| doing(&name, error))?;
        names.push(name);
    }
    for name in &names {
        await_established(&definitions, name).await.map_err(|error| doing(name, error))?;
    }
    Ok(names)
}

/// The annotation of a CRD with the conversion that a conversion on a developer's machine replaces, as JSON.
pub const REPLACED_CONVERSION: &str = "windlass.dev/replaced-conversion";

/// Sets the conversion (`spec.conversion`) of an installed CRD, or removes the conversion. Returns whether the CRD is installed.
///
/// The annotation [`REPLACED_CONVERSION`] keeps `replaced`, so that a later process can restore the conversion. Without `replaced`, the
/// annotation is removed.
///
/// # Errors
/// The server refused the change.
pub async fn set_conversion(
    client: &Client,
    name: &str,
    conversion: Option<&Value>,
    replaced: Option<&Value>,
) -> Result<bool> {
    let definitions = definitions(client);
    let Some(live) = definitions.get_opt(name).await? else { return Ok(false) };
    let live = json_of(&live)?;
    let mut crd = bare(name);
    keep_metadata(&live, &mut crd);
    if let Some(replaced) = replaced {
        crd["metadata"]["annotations"][REPLACED_CONVERSION] = replaced.to_string().into();
    } else if let Some(annotations) = crd["metadata"]["annotations"].as_object_mut() {
        annotations.remove(REPLACED_CONVERSION);
    }
    crd["spec"] = live["spec"].clone();
    if let Some(spec) = crd["spec"].as_object_mut() {
        match conversion {
            Some(conversion) => drop(spec.insert("conversion".to_owned(), conversion.clone())),
            None => drop(spec.remove("conversion")),
        }
    }
    apply(&definitions, name, &crd).await?;
    Ok(true)
}

/// Returns the CRDs of a cluster, as JSON: a schema is sent back unchanged.
pub(super) fn definitions(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()))
}

pub(super) fn json_of(object: &DynamicObject) -> Result<Value> {
    serde_json::to_value(object).map_err(Error::other)
}

/// Returns a CRD without any field.
fn bare(name: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": name },
    })
}

async fn install(definitions: &Api<DynamicObject>, name: &str, mut crd: Value) -> Result<()> {
    if let Some(live) = definitions.get_opt(name).await? {
        let live = json_of(&live)?;
        keep_metadata(&live, &mut crd);
        keep_conversion(&live, &mut crd);
    }
    apply(definitions, name, &crd).await
}

async fn apply(definitions: &Api<DynamicObject>, name: &str, crd: &Value) -> Result<()> {
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let applied = definitions.patch(name, &parameters, &Patch::Apply(crd)).await?;
    hand_over(definitions, name, &applied).await
}

/// Removes earlier field managers from an applied CRD. A field without a further field manager is removed.
pub(super) async fn hand_over(
    definitions: &Api<DynamicObject>,
    name: &str,
    applied: &DynamicObject,
) -> Result<()> {
    let managers = applied.metadata.managed_fields.as_deref().unwrap_or_default();
    for earlier in EARLIER_MANAGERS {
        if managers.iter().any(|entry| entry.manager.as_deref() == Some(earlier)) {
            let parameters = PatchParams::apply(earlier).force();
            definitions.patch(name, &parameters, &Patch::Apply(bare(name))).await?;
        }
    }
    Ok(())
}

/// Waits until the server serves the resource of a CRD.
///
/// # Errors
/// The server did not serve the resource within 30 s. The error has the server's reason, if the names of the CRD were not accepted.
pub(super) async fn await_established(definitions: &Api<DynamicObject>, name: &str) -> Result<()> {
    let mut rejected = None;
    let waited = timeout(ESTABLISHED_WITHIN, established(definitions, name, &mut rejected)).await;
    waited.unwrap_or_else(|_| {
        let reason = rejected.map(|reason| format!(": {reason}")).unwrap_or_default();
        Err(Error::setup(format!("not established within {ESTABLISHED_WITHIN:?}{reason}")))
    })
}

/// Returns whether the server serves the resources of a CRD.
pub(super) fn is_established(crd: &DynamicObject) -> bool {
    conditions(crd).any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn conditions(crd: &DynamicObject) -> impl Iterator<Item = &Value> {
    crd.data["status"]["conditions"].as_array().into_iter().flatten()
}

async fn established(
    definitions: &Api<DynamicObject>,
    name: &str,
    rejected: &mut Option<String>,
) -> Result<()> {
    let mut pause = Duration::from_millis(5);
    loop {
        let live = definitions.get(name).await?;
        if is_established(&live) {
            return Ok(());
        }
        let refused = conditions(&live)
            .find(|condition| condition["type"] == "NamesAccepted" && condition["status"] == "False");
        *rejected = refused.and_then(|condition| condition["message"].as_str()).map(ToOwned::to_owned);
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}
