//! What the API server fills in for a pod's spec, in pods and in the templates of workloads.

use serde_json::{Map, Value, json};

use crate::strategy::fields::{
    canonical_quantities, canonical_quantity, default, default_number, default_text, entry_mut, items_mut,
};
use crate::wire::Quantity;

/// Completes the spec of a pod or pod template.
pub(crate) fn default_spec(spec: &mut Map<String, Value>) {
    default_text(spec, "restartPolicy", "Always");
    default_text(spec, "dnsPolicy", "ClusterFirst");
    default_text(spec, "schedulerName", "default-scheduler");
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", 30);
    mirror_service_account(spec);
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items_mut(spec, list) {
            default_container(container, host_network);
        }
    }
    for volume in items_mut(spec, "volumes") {
        default_volume(volume);
    }
    canonical_quantities(spec, "overhead");
    for constraint in items_mut(spec, "topologySpreadConstraints") {
        default(constraint, "whenUnsatisfiable", "DoNotSchedule");
    }
}

/// Completes what only pods get, not templates.
pub(crate) fn default_pod(spec: &mut Map<String, Value>) {
    default_spec(spec);
    default(spec, "enableServiceLinks", true);
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            requests_from_limits(container);
        }
    }
}

/// The old name of the field follows the new one, or leads where only it is given.
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

fn default_container(container: &mut Map<String, Value>, host_network: bool) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if pulls_always(image) { "Always" } else { "IfNotPresent" };
    default_text(container, "imagePullPolicy", policy);
    default_text(container, "terminationMessagePath", "/dev/termination-log");
    default_text(container, "terminationMessagePolicy", "File");
    default(container, "resources", json!({}));
    if let Some(resources) = entry_mut(container, "resources") {
        canonical_quantities(resources, "limits");
        canonical_quantities(resources, "requests");
    }
    for port in items_mut(container, "ports") {
        default_text(port, "protocol", "TCP");
        if host_network && let Some(number) = port.get("containerPort").cloned() {
            let number = number.as_i64().unwrap_or_default();
            default_number(port, "hostPort", number);
        }
    }
    for variable in items_mut(container, "env") {
        if let Some(source) = entry_mut(variable, "valueFrom") {
            default_source(source);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = entry_mut(container, probe) {
            default_probe(probe);
        }
    }
    if let Some(lifecycle) = entry_mut(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = entry_mut(lifecycle, hook) {
                default_http_get(hook);
            }
        }
    }
}

/// Whether an image without a policy is pulled each time: it has no tag, or the tag `latest`, and no digest.
fn pulls_always(image: &str) -> bool {
    if image.is_empty() || image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn default_source(source: &mut Map<String, Value>) {
    if let Some(field) = entry_mut(source, "fieldRef") {
        default_text(field, "apiVersion", "v1");
    }
    if let Some(divisor) = entry_mut(source, "resourceFieldRef") {
        default(divisor, "divisor", "0");
        if let Some(divisor) = divisor.get_mut("divisor") {
            canonical_quantity(divisor);
        }
    }
}

fn default_probe(probe: &mut Map<String, Value>) {
    default_http_get(probe);
    if let Some(grpc) = entry_mut(probe, "grpc") {
        default(grpc, "service", "");
    }
    default_number(probe, "timeoutSeconds", 1);
    default_number(probe, "periodSeconds", 10);
    default_number(probe, "successThreshold", 1);
    default_number(probe, "failureThreshold", 3);
}

fn default_http_get(handler: &mut Map<String, Value>) {
    if let Some(get) = entry_mut(handler, "httpGet") {
        default_text(get, "path", "/");
        default_text(get, "scheme", "HTTP");
    }
}

/// A container that names a limit and no request asks for its limit.
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
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = entry_mut(volume, source) {
            default(source, "defaultMode", 0o644);
        }
    }
    if let Some(source) = entry_mut(volume, "emptyDir")
        && let Some(limit) = source.get_mut("sizeLimit")
    {
        canonical_quantity(limit);
    }
    if let Some(source) = entry_mut(volume, "downwardAPI") {
        items_mut(source, "items").for_each(default_source);
    }
    if let Some(projected) = entry_mut(volume, "projected") {
        for source in items_mut(projected, "sources") {
            if let Some(token) = entry_mut(source, "serviceAccountToken") {
                default(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = entry_mut(source, "downwardAPI") {
                items_mut(downward, "items").for_each(default_source);
            }
        }
    }
    if let Some(source) = entry_mut(volume, "ephemeral")
        && let Some(template) = entry_mut(source, "volumeClaimTemplate")
        && let Some(spec) = entry_mut(template, "spec")
    {
        default_claim_spec(spec);
    }
    default_volume_source(volume);
}

/// Completes the sources that volumes of pods share with persistent volumes.
pub(crate) fn default_volume_source(volume: &mut Map<String, Value>) {
    if let Some(source) = entry_mut(volume, "hostPath") {
        default(source, "type", "");
    }
    if let Some(source) = entry_mut(volume, "iscsi") {
        default_text(source, "iscsiInterface", "default");
    }
    if let Some(source) = entry_mut(volume, "rbd") {
        default_text(source, "pool", "rbd");
        default_text(source, "user", "admin");
        default_text(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = entry_mut(volume, "azureDisk") {
        default(source, "cachingMode", "ReadWrite");
        default(source, "fsType", "ext4");
        default(source, "kind", "Shared");
        default(source, "readOnly", false);
    }
    if let Some(source) = entry_mut(volume, "scaleIO") {
        default_text(source, "storageMode", "ThinProvisioned");
        default_text(source, "fsType", "xfs");
    }
}

/// Completes the spec of a claim.
pub(crate) fn default_claim_spec(spec: &mut Map<String, Value>) {
    default(spec, "volumeMode", "Filesystem");
    if let Some(resources) = entry_mut(spec, "resources") {
        canonical_quantities(resources, "limits");
        canonical_quantities(resources, "requests");
    }
}

/// The quality of service that a pod gets by what its containers ask for.
pub(crate) fn qos_class(spec: &Value) -> &'static str {
    let mut asks = false;
    let mut guaranteed = true;
    let lists = ["/containers", "/initContainers"];
    let containers = lists.iter().flat_map(|list| crate::strategy::fields::list_at(spec, list));
    for container in containers {
        let amount = |kind: &str, resource: &str| {
            container
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

const TOLERATED: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// A pod stays for five minutes on a node that is not ready, unless it says something else.
pub(crate) fn add_tolerations(spec: &mut Map<String, Value>) {
    let mut tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in TOLERATED {
        let covers = |toleration: &Value| {
            let field = |name: &str| toleration.get(name).and_then(Value::as_str).unwrap_or_default();
            (field("key") == key || field("key").is_empty()) && matches!(field("effect"), "NoExecute" | "")
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    spec.insert("tolerations".to_owned(), tolerations.into());
}

/// What was filled in at creation and is left out of an update comes back.
pub(crate) fn keep_tolerations(object: &mut Value, old: &Value) {
    let spec = crate::strategy::fields::spec_mut(object);
    for field in ["priority", "preemptionPolicy", "priorityClassName"] {
        if let Some(value) = old.pointer(&format!("/spec/{field}")) {
            default(spec, field, value.clone());
        }
    }
    add_tolerations(spec);
}
