//! `ServiceAccount`: every pod has a service account, and the token is mounted into the containers.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_schema::go_quote;

use super::Write;
use crate::meta;
use crate::wire::ApiError;
use windlass_kinds::resources::SERVICE_ACCOUNTS;

const DEFAULT: &str = "default";
/// The time limit for the default account: a controller creates the account soon after the namespace.
const WAIT_FOR_DEFAULT: Duration = Duration::from_millis(1_500);
const VOLUME: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
/// The lifetime of a mounted token in kube-apiserver, in seconds.
const TOKEN_SECONDS: i64 = 3_607;

/// Sets the service account of a new pod, and mounts the token.
pub(super) async fn admit(write: &Write<'_>, pod: &mut Value) -> Result<(), ApiError> {
    if pod["metadata"]["annotations"].get(MIRROR).is_some() {
        return admit_mirror(write, pod);
    }
    let name = match pod["spec"]["serviceAccountName"].as_str() {
        None | Some("") => DEFAULT.to_owned(),
        Some(name) => name.to_owned(),
    };
    let wait = if name == DEFAULT { WAIT_FOR_DEFAULT } else { Duration::ZERO };
    let Some(account) = write.wait_for(&SERVICE_ACCOUNTS, &name, wait).await else {
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount {} not found",
            write.namespace,
            go_quote(&name)
        );
        return Err(write.forbidden(pod, why));
    };
    let spec = meta::entry_object(pod, "spec");
    spec.insert("serviceAccountName".to_owned(), name.clone().into());
    spec.insert("serviceAccount".to_owned(), name.into());
    let flag = |object: &Value| object["automountServiceAccountToken"].as_bool();
    if flag(&pod["spec"]).or_else(|| flag(&account)).unwrap_or(true) {
        mount_token(write, pod);
    }
    let has_secrets = pod["spec"]["imagePullSecrets"].as_array().is_some_and(|list| !list.is_empty());
    if !has_secrets && account["imagePullSecrets"].as_array().is_some_and(|list| !list.is_empty()) {
        pod["spec"]["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    let enforces = account["metadata"]["annotations"][ENFORCE].as_str();
    if enforces.is_some_and(|text| matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")) {
        only_mountable(&account, pod).map_err(|why| write.forbidden(pod, why))?;
    }
    Ok(())
}

/// Checks that a mirror pod, the API object of a static pod, refers to no secret.
fn admit_mirror(write: &Write<'_>, pod: &Value) -> Result<(), ApiError> {
    if pod["spec"]["serviceAccountName"].as_str().is_some_and(|name| !name.is_empty()) {
        return Err(write.forbidden(pod, "a mirror pod may not reference service accounts"));
    }
    let volumes = || pod["spec"]["volumes"].as_array().into_iter().flatten();
    let has_secret = volumes().any(|volume| volume.get("secret").is_some())
        || windlass_kinds::quota::containers(pod).any(|container| secrets(container).next().is_some());
    if has_secret {
        return Err(write.forbidden(pod, "a mirror pod may not reference secrets"));
    }
    let mut sources =
        volumes().flat_map(|volume| volume["projected"]["sources"].as_array().into_iter().flatten());
    if sources.any(|source| source.get("serviceAccountToken").is_some()) {
        let why = "a mirror pod may not use ServiceAccountToken volume projections";
        return Err(write.forbidden(pod, why));
    }
    Ok(())
}

/// Mounts the token into each container without a mount at the same path.
fn mount_token(write: &Write<'_>, pod: &mut Value) {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let mut names = volumes.filter_map(|volume| volume["name"].as_str());
    let present = names.find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let name = present.clone().unwrap_or_else(|| format!("{VOLUME}{}", write.env.suffix()));
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let Some(fields) = container.as_object_mut() else { continue };
            let mounts = fields.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            mounts.push(json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
            is_needed = true;
        }
    }
    if present.is_none() && is_needed {
        let spec = meta::entry_object(pod, "spec");
        let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
        if let Some(volumes) = volumes.as_array_mut() {
            volumes.push(token_volume(&name));
        }
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
            ]}},
        ]},
    })
}

/// Returns the secrets in the environment of a container, with the name of a variable from a secret key.
fn secrets(container: &Value) -> impl Iterator<Item = (Option<&str>, &str)> {
    let variables = container["env"].as_array().into_iter().flatten().filter_map(|variable| {
        Some((variable["name"].as_str(), variable["valueFrom"]["secretKeyRef"]["name"].as_str()?))
    });
    let whole = container["envFrom"].as_array().into_iter().flatten();
    variables.chain(whole.filter_map(|source| Some((None, source["secretRef"]["name"].as_str()?))))
}

/// Checks that a pod refers only to secrets of the pod's service account.
fn only_mountable(account: &Value, pod: &Value) -> Result<(), String> {
    let name = meta::name(account);
    let names = |list: &'_ Value| -> Vec<String> {
        let names = list.as_array().into_iter().flatten().filter_map(|secret| secret["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let mountable = names(&account["secrets"]);
    let end = format!("is not allowed because service account {name} does not reference that");
    let is_mountable = |secret: &str| mountable.iter().any(|known| known == secret);
    for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
        if let Some(secret) = volume["secret"]["secretName"].as_str().filter(|secret| !is_mountable(secret)) {
            return Err(format!("volume with secret.secretName=\"{secret}\" {end} secret"));
        }
    }
    for (list, kind) in [("initContainers", "init container"), ("containers", "container")] {
        for container in pod["spec"][list].as_array().into_iter().flatten() {
            if let Some((variable, secret)) = secrets(container).find(|(_, secret)| !is_mountable(secret)) {
                let container = container["name"].as_str().unwrap_or_default();
                let by = variable.map_or("envFrom".to_owned(), |variable| format!("envVar {variable}"));
                return Err(format!(
                    "{kind} {container} with {by} referencing secret.secretName=\"{secret}\" {end} secret"
                ));
            }
        }
    }
    let pull_secrets = names(&account["imagePullSecrets"]);
    for (index, secret) in names(&pod["spec"]["imagePullSecrets"]).iter().enumerate() {
        if !pull_secrets.contains(secret) {
            return Err(format!("imagePullSecrets[{index}].name=\"{secret}\" {end} imagePullSecret"));
        }
    }
    Ok(())
}
