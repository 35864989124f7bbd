//! Fields of a pod for the containers of the pod: the downward API.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceFieldSelector};
use kube_core::ResourceExt;
use windlass_schema::Quantity;

use crate::kubelet::lifecycle::PodAddresses;
use crate::kubelet::node::{HOST_CPU, HOST_MEMORY, NODE_NAME};

/// Returns the value of a field, by the path of a `fieldRef`.
pub(super) fn field(pod: &Pod, addresses: &PodAddresses, path: &str) -> Result<String, String> {
    let spec = || pod.spec.as_ref();
    let own = || {
        let is_host = spec().is_some_and(|spec| spec.host_network == Some(true));
        let own = if is_host { Some(&addresses.host_ip) } else { addresses.pod_ip.as_ref() };
        own.cloned().unwrap_or_default()
    };
    if let Some((map, key)) = subscript(path) {
        let map = if map == "metadata.labels" { pod.labels() } else { pod.annotations() };
        return Ok(map.get(key).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => lines(pod.labels()),
        "metadata.annotations" => lines(pod.annotations()),
        "spec.nodeName" => NODE_NAME.to_owned(),
        "spec.serviceAccountName" => {
            spec().and_then(|spec| spec.service_account_name.clone()).unwrap_or_default()
        }
        "status.hostIP" | "status.hostIPs" => addresses.host_ip.clone(),
        "status.podIP" | "status.podIPs" => own(),
        _ => return Err(format!("unsupported fieldPath: {path}")),
    })
}

/// Splits `metadata.labels['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, key) = path.split_once("['")?;
    let key = key.strip_suffix("']")?;
    matches!(map, "metadata.labels" | "metadata.annotations").then_some((map, key))
}

/// Writes a map as the kubelet does: a line `key="value"` for each entry.
fn lines(map: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (index, (key, value)) in map.iter().enumerate() {
        let _ = write!(text, "{}{key}={value:?}", if index == 0 { "" } else { "\n" });
    }
    text
}

/// Returns the amount of a resource, in units of the divisor, rounded up. Without a limit, the limit is the node's capacity.
pub(super) fn resource(
    spec: &PodSpec,
    own: &Container,
    selector: &ResourceFieldSelector,
) -> Result<String, String> {
    let named = |name: &String| {
        let inits = spec.init_containers.iter().flatten();
        inits.chain(&spec.containers).find(|container| container.name == *name)
    };
    let container = match &selector.container_name {
        Some(name) => named(name).ok_or_else(|| format!("container {name} not found"))?,
        None => own,
    };
    let resources = container.resources.clone().unwrap_or_default();
    let (kind, name) = selector
        .resource
        .split_once('.')
        .ok_or_else(|| format!("unsupported container resource : {}", selector.resource))?;
    let amounts = if kind == "limits" { resources.limits } else { resources.requests };
    let amount = amounts.and_then(|amounts| amounts.get(name).cloned()).map(|quantity| quantity.0);
    let capacity = match (kind, name) {
        ("limits", "cpu") => HOST_CPU,
        ("limits", "memory" | "ephemeral-storage") => HOST_MEMORY,
        ("requests" | "limits", _) => "0",
        _ => return Err(format!("unsupported container resource : {}", selector.resource)),
    };
    let milli = |text: &str| {
        let quantity: Result<Quantity, _> = text.parse();
        quantity.map(|quantity| quantity.to_milli()).map_err(|_| format!("invalid quantity {text:?}"))
    };
    let amount = milli(amount.as_deref().unwrap_or(capacity))?;
    let divisor = selector.divisor.as_ref().map(|divisor| milli(&divisor.0)).transpose()?;
    let divisor = divisor.filter(|divisor| *divisor > 0).unwrap_or(1000);
    let whole = amount / divisor + i128::from(amount % divisor > 0);
    Ok(whole.to_string())
}
