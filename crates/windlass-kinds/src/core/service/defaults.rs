//! Defaults of services that depend on other fields.

use serde_json::{Map, Value, json};

use super::{Services, has_cluster_address, is_external, kind};
use crate::json::{default, default_text, entry_mut, items_mut, object_mut, spec_mut, text_at};
use crate::kind::Defaults;

impl Defaults for Services {
    fn default(&self, object: &mut Value) {
        default_spec(spec_mut(object));
        default_status(object);
    }
}

/// The session timeout of clients, in seconds.
const AFFINITY_TIMEOUT: i64 = 10_800;

pub(super) fn default_spec(spec: &mut Map<String, Value>) {
    let kind = kind(spec).to_owned();
    if spec.get("sessionAffinity").is_some_and(|affinity| affinity == "ClientIP") {
        default(spec, "sessionAffinityConfig", json!({}));
        if let Some(config) = entry_mut(spec, "sessionAffinityConfig") {
            default(config, "clientIP", json!({}));
            if let Some(client) = entry_mut(config, "clientIP") {
                default(client, "timeoutSeconds", AFFINITY_TIMEOUT);
            }
        }
    } else if spec.get("sessionAffinity").is_some_and(|affinity| affinity == "None") {
        spec.remove("sessionAffinityConfig");
    }
    for port in items_mut(spec, "ports") {
        let number = port.get("port").cloned().unwrap_or(Value::Null);
        let target = port.entry("targetPort").or_insert(Value::Null);
        if target.is_null() || *target == "" || *target == 0 {
            *target = number;
        }
    }
    if has_cluster_address(&kind) {
        default_text(spec, "internalTrafficPolicy", "Cluster");
    }
    if is_external(spec) {
        default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Sets the mode of the addresses of a load balancer.
pub(super) fn default_status(object: &mut Value) {
    if text_at(object, "/spec/type") != "LoadBalancer" {
        return;
    }
    let status = object_mut(object, "status").and_then(|status| entry_mut(status, "loadBalancer"));
    for ingress in status.into_iter().flat_map(|balancer| items_mut(balancer, "ingress")) {
        if ingress.get("ip").and_then(Value::as_str).is_some_and(|address| !address.is_empty()) {
            default(ingress, "ipMode", "VIP");
        }
    }
}
