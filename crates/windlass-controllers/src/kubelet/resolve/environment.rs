//! The environment of a container.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVarSource, Pod, PodSpec};
use kube_core::ResourceExt;

use super::expansion::expand;
use super::field;
use super::objects::Objects;
use super::service_links::service_links;
use crate::kubelet::lifecycle::PodAddresses;

/// A pod, the addresses of the pod, and the objects that the pod refers to.
#[derive(Clone, Copy, Debug)]
pub(in crate::kubelet) struct Scope<'a> {
    pub pod: &'a Pod,
    pub spec: &'a PodSpec,
    pub addresses: &'a PodAddresses,
    pub objects: &'a Objects,
}

impl Scope<'_> {
    pub(super) fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }
}

/// Returns the environment of a container: variables of Services, then `envFrom`, then `env`, each replacing earlier variables of
/// the same name.
///
/// # Errors
/// An object or a key is missing.
pub(in crate::kubelet) fn environment(
    scope: Scope<'_>,
    container: &Container,
) -> Result<Vec<(String, String)>, String> {
    let mut services = BTreeMap::new();
    services.extend(service_links(scope.spec, &scope.namespace(), &scope.objects.services));
    let mut own = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        own.extend(env_from(scope, source)?);
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(text), _) if !text.is_empty() => {
                let value = |name: &str| own.get(name).or_else(|| services.get(name)).map(String::as_str);
                Some(expand(text, value))
            }
            (_, Some(source)) => value_from(scope, container, source)?,
            _ => Some(String::new()),
        };
        if let Some(value) = value {
            own.insert(variable.name.clone(), value);
        }
    }
    services.extend(own);
    Ok(services.into_iter().collect())
}

fn env_from(scope: Scope<'_>, source: &EnvFromSource) -> Result<BTreeMap<String, String>, String> {
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let mut all = BTreeMap::new();
    if let Some(source) = &source.config_map_ref {
        match scope.objects.config_maps.get(&source.name) {
            Some(map) => all.extend(map.data.clone().unwrap_or_default()),
            None if source.optional == Some(true) => {}
            None => return Err(format!("configmap {:?} not found", source.name)),
        }
    }
    if let Some(source) = &source.secret_ref {
        match scope.objects.secrets.get(&source.name) {
            Some(secret) => {
                let data = secret.data.clone().unwrap_or_default();
                all.extend(data.into_iter().map(|(key, value)| (key, text(value.0))));
            }
            None if source.optional == Some(true) => {}
            None => return Err(format!("secret {:?} not found", source.name)),
        }
    }
    Ok(all.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value)).collect())
}

/// Returns the value of a variable. `None`: the source is optional and missing.
fn value_from(
    scope: Scope<'_>,
    container: &Container,
    source: &EnvVarSource,
) -> Result<Option<String>, String> {
    if let Some(selector) = &source.field_ref {
        return field::field(scope.pod, scope.addresses, &selector.field_path).map(Some);
    }
    if let Some(selector) = &source.resource_field_ref {
        return field::resource(scope.spec, container, selector).map(Some);
    }
    let (namespace, objects) = (scope.namespace(), scope.objects);
    if let Some(selector) = &source.config_map_key_ref {
        let (name, key, optional) = (&selector.name, &selector.key, selector.optional == Some(true));
        let map = match objects.config_maps.get(name) {
            Some(map) => map,
            None if optional => return Ok(None),
            None => return Err(format!("configmap {name:?} not found")),
        };
        return match map.data.as_ref().and_then(|data| data.get(key)) {
            Some(value) => Ok(Some(value.clone())),
            None if optional => Ok(None),
            None => Err(format!("couldn't find key {key} in ConfigMap {namespace}/{name}")),
        };
    }
    if let Some(selector) = &source.secret_key_ref {
        let (name, key, optional) = (&selector.name, &selector.key, selector.optional == Some(true));
        let secret = match objects.secrets.get(name) {
            Some(secret) => secret,
            None if optional => return Ok(None),
            None => return Err(format!("secret {name:?} not found")),
        };
        return match secret.data.as_ref().and_then(|data| data.get(key)) {
            Some(value) => Ok(Some(text(value.0.clone()))),
            None if optional => Ok(None),
            None => Err(format!("couldn't find key {key} in Secret {namespace}/{name}")),
        };
    }
    Err("this node cannot set a variable from a file of a volume (fileKeyRef)".to_owned())
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
