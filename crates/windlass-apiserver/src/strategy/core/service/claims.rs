//! What no two services may have.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::Value;

use crate::strategy::fields::{int_at, list_at};

/// Returns the claim of a cluster address.
pub(super) fn address_claim(address: Ipv4Addr) -> String {
    format!("ip/{address}")
}

/// Returns the claim of a node port.
pub(super) fn port_claim(port: i64) -> String {
    format!("port/{port}")
}

/// Returns the claims of a service: its cluster addresses, its node ports and its port for health checks.
pub(super) fn claims(service: &Value) -> Vec<String> {
    let addresses =
        list_at(service, "/spec/clusterIPs").iter().filter_map(|address| address.as_str()?.parse().ok());
    let ports = list_at(service, "/spec/ports").iter().filter_map(|port| int_at(port, "/nodePort"));
    // Ports of several protocols may have one number.
    let ports: BTreeSet<i64> =
        ports.chain(int_at(service, "/spec/healthCheckNodePort")).filter(|port| *port != 0).collect();
    addresses.map(address_claim).chain(ports.into_iter().map(port_claim)).collect()
}
