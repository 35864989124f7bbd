//! Defaults of pods and pod templates that depend on other fields.

use serde_json::{Map, Value, json};
use windlass_wire::Quantity;

use super::disabled::drop_disabled;
use crate::json::{default, default_number, default_text, entry_mut, items_mut};

/// Sets the defaults of the spec of a pod or pod template.
pub(crate) fn default_spec(spec: &mut Map<String, Value>) {
    drop_disabled(spec);
    mirror_service_account(spec);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        items_mut(spec, list).for_each(default_container);
    }
    items_mut(spec, "volumes").for_each(default_volume);
}

/// Sets the defaults of a pod, including the defaults of [`default_spec`].
pub(crate) fn default_pod(spec: &mut Map<String, Value>) {
    default_spec(spec);
    default(spec, "enableServiceLinks", true);
    // A negative grace period was once allowed.
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            requests_from_limits(container);
            if host_network {
                items_mut(container, "ports").for_each(default_host_port);
            }
        }
    }
}

/// Copies `serviceAccountName` to the old name `serviceAccount`, or the old field to the new field if only
/// the old field is set.
fn mirror_service_account(spec: &mut Map<String, Value>) {
    let text = |spec: &Map<String, Value>, field: &str| {
        spec.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let name = text(spec, "serviceAccountName").or_else(|| text(spec, "serviceAccount"));
    if let Some(name) = name {
        spec.insert("serviceAccountName".to_owned(), name.clone().into());
        spec.insert("serviceAccount".to_owned(), name.into());
    }
}

fn default_container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = pull_policy(image);
    default_text(container, "imagePullPolicy", policy);
}

fn default_host_port(port: &mut Map<String, Value>) {
    if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
        default_number(port, "hostPort", number);
    }
}

/// Returns the default pull policy of an image: `Always` without a digest if the tag is absent or `latest`.
fn pull_policy(image: &str) -> &'static str {
    if image.is_empty() || image.contains('@') {
        return "IfNotPresent";
    }
    let (folder, name) = image.rsplit_once('/').map_or((None, image), |(folder, name)| (Some(folder), name));
    let (name, tag) = name.split_once(':').unwrap_or((name, "latest"));
    /// The longest name of an image, with its registry.
    const MAX_NAME: usize = 255;
    // A text that is not an image reference has no tag.
    let parts = folder.into_iter().flat_map(|folder| folder.split('/')).enumerate();
    let is_reference =
        parts.into_iter().all(|(index, part)| is_component(part) || index == 0 && is_domain(part))
            && is_component(name)
            && "docker.io/library/".len() + folder.map_or(0, str::len) + name.len() <= MAX_NAME;
    if is_reference && tag == "latest" { "Always" } else { "IfNotPresent" }
}

/// Returns whether a part of the path of an image consists of lower-case words, with a separator between two
/// words: a dot, one or two underscores, or hyphens.
fn is_component(part: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_separator =
        |text: &str| matches!(text, "" | "." | "_" | "__") || text.chars().all(|letter| letter == '-');
    part.starts_with(is_word) && part.ends_with(is_word) && part.split(is_word).all(is_separator)
}

/// Returns whether the first part of an image can be a registry.
fn is_domain(part: &str) -> bool {
    let (host, port) = part.split_once(':').unwrap_or((part, "1"));
    let is_label = |label: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric();
        label.starts_with(is_letter)
            && label.ends_with(is_letter)
            && label.chars().all(|letter| is_letter(letter) || letter == '-')
    };
    let is_port = !port.is_empty() && port.chars().all(|letter| letter.is_ascii_digit());
    (part.contains(['.', ':']) || part == "localhost") && host.split('.').all(is_label) && is_port
}

/// Sets the requests of a container to its limits.
fn requests_from_limits(container: &mut Map<String, Value>) {
    let Some(resources) = entry_mut(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    if let Some(requests) = requests.as_object_mut() {
        for (resource, limit) in limits {
            requests.entry(resource).or_insert(limit);
        }
    }
}

const VOLUME_SOURCES: [&str; 30] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
];

fn default_volume(volume: &mut Map<String, Value>) {
    if !VOLUME_SOURCES.iter().any(|source| volume.get(*source).is_some_and(|value| !value.is_null())) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(image) = entry_mut(volume, "image") {
        let policy = pull_policy(image.get("reference").and_then(Value::as_str).unwrap_or_default());
        default_text(image, "pullPolicy", policy);
    }
}

/// Returns the quality of service class for the requests and limits of a pod: those of the whole pod, or else those of the containers.
pub(crate) fn qos_class(spec: &Value) -> &'static str {
    if sets_resources(spec) {
        return qos_of(std::iter::once(spec));
    }
    let lists = ["/containers", "/initContainers"];
    qos_of(lists.iter().flat_map(|list| crate::json::list_at(spec, list)))
}

/// Returns whether a pod sets resources of the whole pod.
fn sets_resources(spec: &Value) -> bool {
    let lists = ["/resources/requests", "/resources/limits"];
    let mut names = lists.iter().filter_map(|list| spec.pointer(list)?.as_object()).flat_map(Map::keys);
    names.any(|name| matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-"))
}

/// Returns the class for the `resources` of each object.
fn qos_of<'a>(objects: impl Iterator<Item = &'a Value>) -> &'static str {
    let mut asks = false;
    let mut guaranteed = true;
    for object in objects {
        let amount = |kind: &str, resource: &str| {
            object
                .pointer(&format!("/resources/{kind}/{resource}"))
                .and_then(Value::as_str)
                .and_then(|text| text.parse::<Quantity>().ok())
                .filter(|quantity| quantity.signum() > 0)
        };
        for resource in ["cpu", "memory"] {
            let (limit, request) = (amount("limits", resource), amount("requests", resource));
            asks |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
        }
    }
    match (asks, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
