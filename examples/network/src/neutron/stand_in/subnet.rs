//! What Neutron computes of a subnet.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::reply::Reply;
use crate::{Cidr, Desired, neutron::AllocationPool};

/// The addresses of a subnet that is created.
pub(super) struct Addresses {
    pub(super) cidr: Cidr,
    pub(super) gateway: Option<IpAddr>,
    pub(super) pools: Vec<AllocationPool>,
}

impl Addresses {
    /// Reads the fields of a request. Without a gateway, the first address is it.
    pub(super) fn read(fields: &Value) -> Result<Self, Reply> {
        let text = fields["cidr"].as_str().unwrap_or_default();
        let cidr = Cidr::of_network(text)
            .ok_or_else(|| Reply::invalid(format!("{text} is not in a CIDR format")))?;
        let version = fields["ip_version"].as_u64().unwrap_or(4);
        if version != u64::from(cidr.ip_version()) {
            return Err(Reply::invalid(format!("cidr '{cidr}' does not match the ip_version '{version}'")));
        }
        let gateway = match &fields["gateway_ip"] {
            Value::Null if fields.get("gateway_ip").is_some() => None,
            Value::Null => Some(cidr.first_host()),
            value => Some(address(value)?),
        };
        if let Some(gateway) = gateway.filter(|gateway| cidr.contains(*gateway) && !cidr.has_host(*gateway)) {
            return Err(Reply::invalid(format!("Gateway {gateway} is not valid on subnet {cidr}")));
        }
        let pools = match fields["allocation_pools"].as_array() {
            None => Desired { cidr, gateway: gateway.unwrap_or(cidr.network()) }.allocation_pools(),
            Some(pools) => read_pools(pools)?,
        };
        Ok(Self { cidr, gateway, pools })
    }
}

/// Refuses a gateway that hosts could have.
pub(super) fn check_gateway(gateway: Option<IpAddr>, pools: &[AllocationPool]) -> Result<(), Reply> {
    let Some(gateway) = gateway else { return Ok(()) };
    match pools.iter().find(|pool| (pool.start..=pool.end).contains(&gateway)) {
        None => Ok(()),
        Some(AllocationPool { start, end }) => {
            let message = format!("Gateway ip {gateway} conflicts with allocation pool {start}-{end}.");
            Err(Reply::error(409, "GatewayConflictWithAllocationPools", message))
        }
    }
}

pub(super) fn read_pools(pools: &[Value]) -> Result<Vec<AllocationPool>, Reply> {
    let read =
        |pool: &Value| Ok(AllocationPool { start: address(&pool["start"])?, end: address(&pool["end"])? });
    pools.iter().map(read).collect()
}

pub(super) fn address(value: &Value) -> Result<IpAddr, Reply> {
    let text = value.as_str().unwrap_or_default();
    text.parse().map_err(|_| {
        Reply::bad_request(format!(
            "Invalid input for gateway_ip. Reason: '{text}' is not a valid IP address."
        ))
    })
}

pub(super) fn pools_value(pools: &[AllocationPool]) -> Value {
    json!(pools)
}
