//! Installs CRDs as `kubectl apply --server-side` does, so that kubectl and the commands take turns without conflicts.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::{
    Client,
    api::{Api, Patch, PatchParams},
};
use kube_core::{ApiResource, DynamicObject};
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};
use windlass_runtime::{Error, Result};

use crate::manifests::{FIELD_MANAGER, parameters};

/// The field managers of earlier releases. Their fields are handed over to [`FIELD_MANAGER`].
const EARLIER_MANAGERS: [&str; 2] = ["windlass-dev", "windlass-webhooks"];

/// The limit for the server to serve a new CRD.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// Applies the derived CRDs of an operator, as [`install_definitions`] does. The versions of a kind are
/// [merged](windlass_codegen::cluster_definitions) into one CRD.
///
/// # Errors
/// The versions of a kind contradict each other, or see [`install_definitions`].
pub async fn install_crds(client: &Client, crds: &[CustomResourceDefinition]) -> Result<Vec<String>> {
    install_definitions(client, &windlass_codegen::cluster_definitions(crds).map_err(Error::other)?).await
}

/// Applies CRDs by server-side apply, waits until the server serves their resources, and returns the names of the CRDs. Objects of CRDs
/// that exist already are kept.
///
/// The field manager is the field manager of `kubectl apply --server-side`. Labels and annotations that kubectl applied stay. A
/// conversion webhook stays, too, while a kind has several versions: without the webhook, fields of stored objects would be lost. A
/// definition with a conversion of its own replaces a webhook behind a service, but not a webhook at a URL, where `windlass run` serves.
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
        timeout(ESTABLISHED_WITHIN, established(&definitions, name))
            .await
            .unwrap_or_else(|_| Err(Error::other(format!("not established within {ESTABLISHED_WITHIN:?}"))))
            .map_err(|error| doing(name, error))?;
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

/// The CRDs of a cluster, as JSON: a schema is sent back as the server has written it.
fn definitions(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()))
}

fn json_of(object: &DynamicObject) -> Result<Value> {
    serde_json::to_value(object).map_err(Error::other)
}

/// A CRD without any field.
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

/// Applies a CRD. Earlier field managers give up their fields afterwards: a field without another field manager is removed.
async fn apply(definitions: &Api<DynamicObject>, name: &str, crd: &Value) -> Result<()> {
    let applied = definitions.patch(name, &parameters(), &Patch::Apply(crd)).await?;
    let managers = applied.metadata.managed_fields.unwrap_or_default();
    for earlier in EARLIER_MANAGERS {
        let is_it = |manager: &Option<String>| manager.as_deref() == Some(earlier);
        if managers.iter().any(|entry| is_it(&entry.manager)) {
            let parameters = PatchParams::apply(earlier).force();
            definitions.patch(name, &parameters, &Patch::Apply(bare(name))).await?;
        }
    }
    Ok(())
}

/// Copies the labels and annotations that kubectl has applied and that `crd` does not set, such as the annotation of cert-manager: an
/// apply removes the fields that the field manager leaves out.
fn keep_metadata(live: &Value, crd: &mut Value) {
    let entries = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    let own = entries.filter(|entry| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply");
    for fields in own.map(|entry| &entry["fieldsV1"]["f:metadata"]) {
        for member in ["labels", "annotations"] {
            let owned = fields[format!("f:{member}")].as_object().into_iter().flat_map(Map::keys);
            for key in owned.filter_map(|key| key.strip_prefix("f:")) {
                let value = &live["metadata"][member][key];
                if value.is_string() && crd["metadata"][member][key].is_null() {
                    crd["metadata"][member][key] = value.clone();
                }
            }
        }
    }
}

/// Copies the conversion webhook of the live CRD, unless `crd` has one version, or names another service.
fn keep_conversion(live: &Value, crd: &mut Value) {
    let (before, now) = (&live["spec"]["conversion"], &crd["spec"]["conversion"]);
    let has_versions = crd["spec"]["versions"].as_array().is_some_and(|versions| versions.len() > 1);
    let service = |conversion: &Value| conversion["webhook"]["clientConfig"]["service"].clone();
    let is_replaced =
        now.is_object() && !service(before).is_null() && !same_service(&service(before), &service(now));
    if before["strategy"] == "Webhook" && has_versions && !is_replaced {
        crd["spec"]["conversion"] = before.clone();
    }
}

/// Whether two references name one service. The server adds the default port.
fn same_service(one: &Value, other: &Value) -> bool {
    ["namespace", "name", "path"].into_iter().all(|member| one[member] == other[member])
}

async fn established(definitions: &Api<DynamicObject>, name: &str) -> Result<()> {
    loop {
        let live = definitions.get(name).await?;
        let mut conditions = live.data["status"]["conditions"].as_array().into_iter().flatten();
        if conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True") {
            return Ok(());
        }
        sleep(Duration::from_millis(5)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(versions: usize, conversion: &Value) -> Value {
        json!({ "spec": { "versions": vec![json!({}); versions], "conversion": conversion } })
    }

    fn webhook(config: Value) -> Value {
        json!({ "strategy": "Webhook", "webhook": { "clientConfig": config } })
    }

    #[track_caller]
    fn after(live: &Value, versions: usize, own: &Value, expected: &Value) {
        let mut installed = crd(versions, own);
        keep_conversion(&crd(2, live), &mut installed);
        assert_eq!(&installed["spec"]["conversion"], expected);
    }

    #[test]
    fn a_conversion_webhook_is_never_lost() {
        let url = webhook(json!({ "url": "https://127.0.0.1:1/convert" }));
        let service = |name: &str| json!({ "namespace": "web-system", "name": name, "path": "/convert" });
        let own = webhook(json!({ "service": service("web") }));
        let mut certified = own.clone();
        certified["webhook"]["clientConfig"]["caBundle"] = json!("cGVt");
        certified["webhook"]["clientConfig"]["service"]["port"] = json!(443);
        let other = webhook(json!({ "service": service("old") }));
        let none = json!({ "strategy": "None" });

        after(&url, 2, &Value::Null, &url);
        after(&url, 2, &own, &url);
        after(&certified, 2, &own, &certified);
        after(&other, 2, &Value::Null, &other);
        after(&other, 2, &own, &own);
        after(&none, 2, &own, &own);
        after(&none, 2, &Value::Null, &Value::Null);
        after(&url, 1, &Value::Null, &Value::Null);
    }

    #[test]
    fn labels_and_annotations_that_kubectl_applied_stay() {
        let owned = json!({ "f:metadata": { "f:annotations": { ".": {}, "f:inject": {}, "f:team": {} } } });
        let live = json!({ "metadata": {
            "annotations": { "inject": "yes", "team": "old", "foreign": "x" },
            "managedFields": [
                { "manager": "kubectl", "operation": "Apply", "fieldsV1": owned },
                { "manager": "other", "operation": "Update", "fieldsV1": { "f:metadata": { "f:annotations": { "f:foreign": {} } } } },
            ],
        } });
        let mut crd = json!({ "metadata": { "name": "a", "annotations": { "team": "web" } } });
        keep_metadata(&live, &mut crd);
        assert_eq!(
            crd,
            json!({ "metadata": { "name": "a", "annotations": { "inject": "yes", "team": "web" } } })
        );
    }
}
