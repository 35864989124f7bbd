//! The exclusive addresses and ports of services.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::Value;

use super::{has_cluster_address, has_node_ports, kind, needs_health_check};
use crate::json::{int_at, list_at};

/// Returns the claim of a cluster address.
pub(super) fn address_claim(address: Ipv4Addr) -> String {
    format!("ip/{address}")
}

/// Returns the claim of a node port.
pub(super) fn port_claim(port: i64) -> String {
    format!("port/{port}")
}

/// Returns the claims of a service: the cluster address, the node ports and the port for health checks.
///
/// The claims are exactly the values that allocation checks. A claim without a check would be refused at each
/// commit.
pub(super) fn claims(service: &Value) -> Vec<String> {
    let Some(spec) = service.get("spec").and_then(Value::as_object) else { return Vec::new() };
    let address = spec.get("clusterIP").and_then(Value::as_str).and_then(|address| address.parse().ok());
    let address = address.filter(|_| has_cluster_address(kind(spec)));
    // Ports of several protocols may have one number.
    let mut ports = BTreeSet::new();
    if has_node_ports(kind(spec)) {
        ports.extend(list_at(service, "/spec/ports").iter().filter_map(|port| int_at(port, "/nodePort")));
    }
    if needs_health_check(spec) {
        ports.extend(int_at(service, "/spec/healthCheckNodePort"));
    }
    ports.remove(&0);
    address.into_iter().map(address_claim).chain(ports.into_iter().map(port_claim)).collect()
}
