//! Fields of a service that depend on each other, and on its type.

use serde_json::{Map, Value, json};

use super::{has_cluster_address, has_node_ports, is_external, kind, needs_health_check};
use crate::json::{default_number, int_at, items_mut, list_at, text};

/// Sets `clusterIPs` if a new service has only `clusterIP`.
pub(super) fn fill_addresses(spec: &mut Map<String, Value>) {
    let address = address(spec);
    if !address.is_empty() && addresses(spec).is_empty() {
        spec.insert("clusterIPs".to_owned(), json!([address]));
    }
}

/// Makes `clusterIPs` follow `clusterIP`, for a client that does not know `clusterIPs`: the client leaves
/// `clusterIPs` out, or changes only `clusterIP`.
pub(super) fn follow_address(spec: &mut Map<String, Value>, old: &Value) {
    let (address, before) = (address(spec), text(old, "clusterIP"));
    if let Some(kept) = old.get("clusterIPs")
        && address == before
        && addresses(spec).is_empty()
    {
        spec.insert("clusterIPs".to_owned(), kept.clone());
    }
    if address == before || addresses(spec) != list_at(old, "/clusterIPs") {
        return;
    }
    if address.is_empty() {
        spec.remove("clusterIPs");
    } else {
        spec.insert("clusterIPs".to_owned(), json!([address]));
    }
}

/// Keeps the addresses and ports that an update leaves out.
pub(super) fn keep_allocated(spec: &mut Map<String, Value>, old: &Value) {
    let (kind, before) = (kind(spec).to_owned(), text(old, "type"));
    if has_cluster_address(&kind) && has_cluster_address(before) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            let empty = spec.get(field).is_none_or(|value| {
                value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty)
            });
            if let Some(value) = old.get(field).filter(|_| empty) {
                spec.insert(field.to_owned(), value.clone());
            }
        }
    }
    if has_node_ports(&kind) && has_node_ports(before) {
        keep_node_ports(spec, old);
    }
    if needs_health_check(spec) && old.as_object().is_some_and(needs_health_check) {
        let port = int_at(old, "/healthCheckNodePort").unwrap_or_default();
        default_number(spec, "healthCheckNodePort", port);
    }
}

/// Keeps node ports by the names of the ports, unless the update gives the number to another port.
fn keep_node_ports(spec: &mut Map<String, Value>, old: &Value) {
    let used: Vec<i64> = node_ports(spec);
    for port in items_mut(spec, "ports") {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0 {
            continue;
        }
        let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
        let before = list_at(old, "/ports").iter().rev().find(|before| text(before, "name") == name);
        let number = before.and_then(|before| int_at(before, "/nodePort")).unwrap_or_default();
        if number != 0 && !used.contains(&number) {
            port.insert("nodePort".to_owned(), number.into());
        }
    }
}

/// Removes the fields that do not apply to a new type, unless the client changed them.
pub(super) fn drop_unused(spec: &mut Map<String, Value>, old: &Value) {
    let Some(before) = old.as_object() else { return };
    let (new_kind, old_kind) = (kind(spec).to_owned(), kind(before));
    let drop_same = |spec: &mut Map<String, Value>, fields: &[&str]| {
        if fields.iter().all(|field| spec.get(*field) == before.get(*field)) {
            fields.iter().for_each(|field| drop(spec.remove(*field)));
        }
    };
    if has_cluster_address(old_kind) && !has_cluster_address(&new_kind) {
        drop_same(spec, &["clusterIP", "clusterIPs"]);
        drop_same(spec, &["ipFamilies"]);
        drop_same(spec, &["ipFamilyPolicy"]);
        drop_same(spec, &["internalTrafficPolicy"]);
    }
    if has_node_ports(old_kind) && !has_node_ports(&new_kind) && node_ports(spec) == node_ports(before) {
        items_mut(spec, "ports").for_each(|port| drop(port.remove("nodePort")));
    }
    if needs_health_check(before) && !needs_health_check(spec) {
        drop_same(spec, &["healthCheckNodePort"]);
    }
    if old_kind == "LoadBalancer" && new_kind != "LoadBalancer" {
        drop_same(spec, &["allocateLoadBalancerNodePorts"]);
        drop_same(spec, &["loadBalancerClass"]);
    }
    if is_external(before) && !is_external(spec) {
        drop_same(spec, &["externalTrafficPolicy"]);
    }
}

fn address(spec: &Map<String, Value>) -> String {
    spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn addresses(spec: &Map<String, Value>) -> &[Value] {
    spec.get("clusterIPs").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the node ports in ascending order.
fn node_ports(spec: &Map<String, Value>) -> Vec<i64> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    let mut numbers: Vec<i64> =
        ports.filter_map(|port| int_at(port, "/nodePort")).filter(|number| *number != 0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
