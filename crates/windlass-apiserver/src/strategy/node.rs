//! Nodes, leases, and what else the machinery of a cluster writes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::checks::enumerated;
use super::fields::{canonical_quantities, default, int_at, list_at, object_mut, spec_mut, text, text_at};
use super::{Facts, Plain, Strategy, StrategyContext};
use crate::meta;
use crate::wire::{ApiError, names};

pub(super) fn of(group: &str, resource: &str) -> &'static dyn Strategy {
    match (group, resource) {
        ("", "nodes") => &Nodes,
        ("coordination.k8s.io", "leases") => &Leases,
        ("node.k8s.io", "runtimeclasses") => &Plain(&RUNTIME_CLASSES),
        ("certificates.k8s.io", "certificatesigningrequests") => &SigningRequests,
        ("apiregistration.k8s.io", "apiservices") => &Plain(&API_SERVICES),
        _ => &Plain(&Facts::SPEC),
    }
}

const NODES: Facts = Facts { selectable: &[("spec.unschedulable", "/spec/unschedulable")], ..Facts::DATA };
const LEASES: Facts = Facts { create_on_update: true, unconditional_update: false, ..Facts::DATA };
const RUNTIME_CLASSES: Facts = Facts { create_on_update: true, unconditional_update: false, ..Facts::DATA };
const SIGNING_REQUESTS: Facts =
    Facts { selectable: &[("spec.signerName", "/spec/signerName")], ..Facts::DATA };
const API_SERVICES: Facts =
    Facts { name: names::path_segment_name, unconditional_update: false, ..Facts::DATA };

struct Nodes;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

fn complete_node(object: &mut Value) {
    if let Some(status) = object_mut(object, "status") {
        canonical_quantities(status, "capacity");
        canonical_quantities(status, "allocatable");
        if !status.contains_key("allocatable")
            && let Some(capacity) = status.get("capacity").cloned()
        {
            status.insert("allocatable".to_owned(), capacity);
        }
    }
}

/// Whether a text is an address, a slash and the number of fixed bits.
fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<std::net::IpAddr>() {
        Ok(address) if address.is_ipv4() => 32,
        Ok(_) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// `podCIDR` is the first of `podCIDRs`.
fn mirror_range(spec: &mut serde_json::Map<String, Value>) {
    let single = spec.get("podCIDR").and_then(Value::as_str).filter(|range| !range.is_empty());
    if let Some(single) = single.map(str::to_owned) {
        default(spec, "podCIDRs", json!([single]));
    } else if let Some(first) = spec.get("podCIDRs").and_then(|list| list.get(0)).cloned() {
        spec.insert("podCIDR".to_owned(), first);
    }
}

impl Strategy for Nodes {
    fn facts(&self) -> &'static Facts {
        &NODES
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let spec = spec_mut(object);
        mirror_range(spec);
        let taints = spec.entry("taints").or_insert_with(|| json!([]));
        if let Some(taints) = taints.as_array_mut()
            && !taints.iter().any(|taint| text(taint, "key") == NOT_READY)
        {
            // Nothing goes to a node before it has said that it is ready.
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        meta::entry_object(object, "status");
        complete_node(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        mirror_range(spec_mut(object));
        complete_node(object);
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (index, taint) in list_at(object, "/spec/taints").iter().enumerate() {
            let path = format!("metadata.taints[{index}]");
            let key = text(taint, "key");
            let complaints = names::label_key(key);
            errors.extend(
                complaints.into_iter().map(|text| FieldError::invalid(format!("{path}.key"), key, text)),
            );
            let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            errors.extend(enumerated(&format!("{path}.effect"), text(taint, "effect"), &known));
        }
        for (index, range) in list_at(object, "/spec/podCIDRs").iter().filter_map(Value::as_str).enumerate() {
            if !is_range(range) {
                let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
                errors.push(FieldError::invalid(format!("spec.podCIDRs[{index}]"), range, detail));
            }
        }
        errors
    }

    fn selectable_value(&self, object: &Value, field: &str) -> String {
        let value = NODES.selectable_value(object, field);
        if field == "spec.unschedulable" && value.is_empty() { "false".to_owned() } else { value }
    }
}

struct Leases;

impl Strategy for Leases {
    fn facts(&self) -> &'static Facts {
        &LEASES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(seconds) = int_at(object, "/spec/leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            let detail = "must be greater than 0";
            errors.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, detail));
        }
        if let Some(count) = int_at(object, "/spec/leaseTransitions").filter(|count| *count < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.leaseTransitions", count, detail));
        }
        errors
    }
}

struct SigningRequests;

impl Strategy for SigningRequests {
    fn facts(&self) -> &'static Facts {
        &SIGNING_REQUESTS
    }

    fn prepare_create(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let spec = spec_mut(object);
        // Who asks is what the server saw, not what the request says.
        for field in ["uid", "groups", "extra"] {
            spec.remove(field);
        }
        spec.insert("username".to_owned(), cx.user.into());
        object["status"] = json!({});
        Ok(())
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        meta::copy_field(object, old, "spec");
        let now = crate::env::rfc3339(cx.env.now());
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
            default(condition, "lastUpdateTime", now.as_str());
            default(condition, "lastTransitionTime", now.as_str());
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if list_at(object, "/spec/usages").is_empty() {
            errors.push(FieldError::required("spec.usages", ""));
        }
        let request = text_at(object, "/spec/request");
        let pem = STANDARD.decode(request).unwrap_or_default();
        if !String::from_utf8_lossy(&pem).trim_start().starts_with("-----BEGIN CERTIFICATE REQUEST-----") {
            let detail = "PEM block type must be CERTIFICATE REQUEST";
            errors.push(FieldError::invalid("spec.request", request, detail));
        }
        let signer = text_at(object, "/spec/signerName");
        if signer.is_empty() {
            errors.push(FieldError::required("spec.signerName", ""));
        } else if !signer.contains('/') {
            let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            errors.push(FieldError::invalid("spec.signerName", signer, detail));
        }
        errors
    }
}
