//! Warnings about services.

use serde_json::Value;

use crate::addresses::{address_warning, range_warning};
use crate::json::{list_at, map_at, text};

const HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Returns the warnings about a service that is written.
pub(super) fn about(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let kind = text(spec, "type");
    let headless = kind == "ClusterIP" && text(spec, "clusterIP") == "None";
    let externals = list_at(spec, "/externalIPs");
    let mut warnings = Vec::new();
    if map_at(object, "/metadata/annotations").is_some_and(|all| all.contains_key(HINTS)) {
        warnings.push(format!(
            "annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let addresses = |field: &str| {
        let list = list_at(spec, &format!("/{field}")).iter().filter_map(Value::as_str).enumerate();
        list.filter_map(|(index, address)| address_warning(&format!("spec.{field}[{index}]"), address))
            .collect::<Vec<_>>()
    };
    if !text(spec, "clusterIP").is_empty() && text(spec, "clusterIP") != "None" {
        warnings.extend(addresses("clusterIPs"));
    }
    if headless {
        if !text(spec, "loadBalancerIP").is_empty() {
            warnings.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if !externals.is_empty() {
            warnings.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if text(spec, "sessionAffinity") != "None" {
            warnings.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    warnings.extend(addresses("externalIPs"));
    if !externals.is_empty() && !headless && kind != "ExternalName" {
        let text = "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(text.to_owned());
    }
    warnings.extend(address_warning("spec.loadBalancerIP", text(spec, "loadBalancerIP")));
    for (index, range) in
        list_at(spec, "/loadBalancerSourceRanges").iter().filter_map(Value::as_str).enumerate()
    {
        warnings.extend(range_warning(&format!("spec.loadBalancerSourceRanges[{index}]"), range));
    }
    if kind == "ExternalName" && !externals.is_empty() {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !text(spec, "externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        let text = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(text.to_owned());
    }
    warnings
}
