//! The credentials of registries in `imagePullSecrets`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{PodSpec, Secret};
use serde_json::Value;
use windlass_node::Credential;

use super::objects::Objects;

/// The default registry of a reference, and the name of the default registry in the files of Docker.
const DOCKER_HUB: &str = "docker.io";
const DOCKER_INDEX: &str = "index.docker.io";

/// Returns the credentials for an image, the most specific first. Secrets that are missing or unreadable are skipped, as by a kubelet.
pub(in crate::kubelet) fn credentials(spec: &PodSpec, image: &str, objects: &Objects) -> Vec<Credential> {
    let names = spec.image_pull_secrets.iter().flatten().map(|reference| &reference.name);
    let secrets = names.filter_map(|name| objects.secrets.get(name));
    let mut found: Vec<(usize, Credential)> = Vec::new();
    for (place, value) in secrets.flat_map(registries) {
        let Some(place) = matching(&place, image) else { continue };
        found.extend(credential(&value).map(|credential| (place, credential)));
    }
    found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    found.into_iter().map(|(_, credential)| credential).collect()
}

/// Returns the entries of a Secret of type `kubernetes.io/dockerconfigjson` or `kubernetes.io/dockercfg`.
fn registries(secret: &Secret) -> Vec<(String, Value)> {
    let data =
        |key: &str| -> Option<Value> { serde_json::from_slice(&secret.data.as_ref()?.get(key)?.0).ok() };
    let entries = match data(".dockerconfigjson") {
        Some(mut config) => config["auths"].take(),
        None => data(".dockercfg").unwrap_or_default(),
    };
    match entries {
        Value::Object(entries) => entries.into_iter().collect(),
        _ => Vec::new(),
    }
}

fn credential(value: &Value) -> Option<Credential> {
    if let Some(token) = value["identitytoken"].as_str().filter(|token| !token.is_empty()) {
        return Some(Credential { user: String::new(), password: token.to_owned() });
    }
    if let (Some(user), Some(password)) = (value["username"].as_str(), value["password"].as_str()) {
        return Some(Credential { user: user.to_owned(), password: password.to_owned() });
    }
    let plain = STANDARD.decode(value["auth"].as_str()?.trim()).ok()?;
    let plain = String::from_utf8(plain).ok()?;
    let (user, password) = plain.split_once(':')?;
    Some(Credential { user: user.to_owned(), password: password.trim_end_matches('\0').to_owned() })
}

/// Returns how specific the entry for `place` is if the entry applies to the image.
fn matching(place: &str, image: &str) -> Option<usize> {
    let place = place.trim_start_matches("https://").trim_start_matches("http://");
    let (host, path) = place.split_once('/').unwrap_or((place, ""));
    // `https://index.docker.io/v1/` is the registry, not a path in the registry.
    let path = path.trim_matches('/');
    let path = if matches!(path, "v1" | "v2") { "" } else { path };
    let (registry, repository) = registry_of(image);
    let is_host = if matches!(host, DOCKER_INDEX | DOCKER_HUB) {
        registry == DOCKER_HUB
    } else {
        host_matches(host, registry)
    };
    let is_path = path.is_empty() || repository == path || repository.starts_with(&format!("{path}/"));
    (is_host && is_path).then_some(host.len() + path.len())
}

/// Returns whether a host name matches a pattern. A `*` stands for a label.
fn host_matches(pattern: &str, host: &str) -> bool {
    let (patterns, hosts): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), host.split('.').collect());
    patterns.len() == hosts.len()
        && patterns.iter().zip(hosts).all(|(pattern, label)| *pattern == "*" || *pattern == label)
}

/// Splits a reference into registry and repository, without tag and digest.
fn registry_of(image: &str) -> (&str, &str) {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (registry, rest) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
        _ => (DOCKER_HUB, name),
    };
    (registry, rest.rsplit_once(':').map_or(rest, |(repository, _)| repository))
}
