//! Giving out cluster addresses and node ports: the next free one after a random start.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::{has_cluster_address, has_node_ports};
use crate::meta;
use crate::store::ResourceId;
use crate::strategy::StrategyContext;
use crate::strategy::fields::{int_at, items_mut, list_at, spec_mut, text_at};
use crate::wire::ApiError;

/// The range of cluster addresses.
pub(crate) const RANGE: &str = "10.0.0.0/16";
const FIRST: u32 = 0x0a00_0001;
const ADDRESSES: u32 = 0xfffe;
const FIRST_PORT: i64 = 30_000;
const PORTS: i64 = 2768;

/// Gives a service the addresses and ports that it needs and has not.
pub(super) fn allocate(cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
    let kind = text_at(object, "/spec/type").to_owned();
    if has_cluster_address(&kind) {
        let address = text_at(object, "/spec/clusterIP").to_owned();
        if address.is_empty() {
            let address = free_address(cx, object)?;
            let spec = spec_mut(object);
            spec.insert("clusterIPs".to_owned(), json!([address]));
            spec.insert("clusterIP".to_owned(), address.into());
        } else {
            check_address(cx, object, &address)?;
        }
    }
    if has_node_ports(&kind)
        && object.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
    {
        allocate_ports(cx, object)?;
    }
    Ok(())
}

fn others<'a>(cx: &'a StrategyContext<'_>, object: &Value) -> impl Iterator<Item = Value> {
    let uid = meta::uid(object).to_owned();
    let services = ResourceId::new("", "services");
    cx.view
        .range(&services, None)
        .map(|(_, stored)| stored.value())
        .filter(move |service| meta::uid(service) != uid)
}

fn taken_addresses(cx: &StrategyContext<'_>, object: &Value) -> BTreeSet<String> {
    others(cx, object)
        .flat_map(|service| list_at(&service, "/spec/clusterIPs").to_vec())
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect()
}

fn free_address(cx: &StrategyContext<'_>, object: &Value) -> Result<String, ApiError> {
    let taken = taken_addresses(cx, object);
    let start = (cx.env.random_u64() % u64::from(ADDRESSES)) as u32;
    (0..ADDRESSES)
        .map(|step| FIRST + (start + step) % ADDRESSES)
        // The first address is the API server's own.
        .filter(|address| *address != FIRST)
        .map(|address| Ipv4Addr::from(address).to_string())
        .find(|address| !taken.contains(address))
        .ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))
}

/// An address that the client chose must be in the range, and free.
fn check_address(cx: &StrategyContext<'_>, object: &Value, address: &str) -> Result<(), ApiError> {
    let Ok(number) = address.parse::<Ipv4Addr>() else { return Ok(()) };
    let list = object.pointer("/spec/clusterIPs").cloned().unwrap_or_else(|| json!([address]));
    let refuse = |why: String| {
        let error = FieldError::invalid("spec.clusterIPs", list.clone(), why);
        ApiError::invalid("", "Service", meta::name(object), &[error])
    };
    let number = u32::from(number);
    if !(FIRST..FIRST + ADDRESSES).contains(&number) {
        return Err(refuse(format!(
            "failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of valid IPs is {RANGE}"
        )));
    }
    if taken_addresses(cx, object).contains(address) {
        return Err(refuse(format!("failed to allocate IP {address}: provided IP is already allocated")));
    }
    Ok(())
}

fn allocate_ports(cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
    let mut taken: BTreeSet<i64> = others(cx, object)
        .flat_map(|service| list_at(&service, "/spec/ports").to_vec())
        .filter_map(|port| int_at(&port, "/nodePort"))
        .collect();
    let name = meta::name(object).to_owned();
    for (index, port) in list_at(object, "/spec/ports").iter().enumerate() {
        let Some(number) = int_at(port, "/nodePort").filter(|number| *number != 0) else { continue };
        let refuse = |why: &str| {
            let error = FieldError::invalid(format!("spec.ports[{index}].nodePort"), number, why);
            Err(ApiError::invalid("", "Service", &name, &[error]))
        };
        if !(FIRST_PORT..FIRST_PORT + PORTS).contains(&number) {
            return refuse(
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            );
        }
        if taken.contains(&number) {
            return refuse("provided port is already allocated");
        }
    }
    taken.extend(list_at(object, "/spec/ports").iter().filter_map(|port| int_at(port, "/nodePort")));
    for port in items_mut(spec_mut(object), "ports") {
        if port.get("nodePort").and_then(Value::as_i64).is_some_and(|number| number != 0) {
            continue;
        }
        let start = (cx.env.random_u64() % PORTS as u64) as i64;
        let free =
            (0..PORTS).map(|step| FIRST_PORT + (start + step) % PORTS).find(|port| !taken.contains(port));
        let Some(free) = free else {
            return Err(ApiError::internal("failed to allocate a nodePort: range is full"));
        };
        taken.insert(free);
        port.insert("nodePort".to_owned(), free.into());
    }
    Ok(())
}
