//! The fields of a subnet that Neutron computes.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::reply::Reply;
use crate::{
    cidr::{Cidr, Flaw},
    neutron::AllocationPool,
};

/// The addresses of a subnet that is created.
pub(super) struct Addresses {
    pub(super) cidr: Cidr,
    pub(super) gateway: Option<IpAddr>,
    pub(super) pools: Vec<AllocationPool>,
}

impl Addresses {
    /// Reads the fields of a request. The default gateway is the first address.
    pub(super) fn read(fields: &Value) -> Result<Self, Reply> {
        let text = fields["cidr"].as_str().unwrap_or_default();
        let cidr = Cidr::of_network(text)
            .ok_or_else(|| Reply::invalid(format!("{text} is not in a CIDR format")))?;
        let version = fields["ip_version"].as_u64().unwrap_or(4);
        if version != u64::from(cidr.ip_version()) {
            return Err(Reply::invalid(format!("cidr '{cidr}' does not match the ip_version '{version}'")));
        }
        check_block(cidr, fields["enable_dhcp"].as_bool().unwrap_or(true))?;
        let gateway = match &fields["gateway_ip"] {
            Value::Null if fields.get("gateway_ip").is_some() => None,
            Value::Null => Some(cidr.first_host()),
            value => Some(address(value)?),
        };
        check_gateway(gateway, cidr)?;
        let pools = match fields["allocation_pools"].as_array() {
            None => AllocationPool::without_gateway(cidr, gateway.unwrap_or(cidr.network())),
            Some(pools) => read_pools(pools, cidr)?,
        };
        Ok(Self { cidr, gateway, pools })
    }
}

/// Refuses a block that no subnet can have, or none with DHCP.
pub(super) fn check_block(cidr: Cidr, with_dhcp: bool) -> Result<(), Reply> {
    let refusal = match cidr.flaw() {
        Some(Flaw::Unspecified) if cidr.ip_version() == 6 => "IPv6 subnet '::' is not supported",
        Some(Flaw::TooSmall) if with_dhcp => {
            "Subnet has a prefix length that is incompatible with DHCP service enabled"
        }
        Some(Flaw::Multicast) if with_dhcp => "Multicast IP subnet is not supported if enable_dhcp is True",
        Some(Flaw::Loopback) if with_dhcp => "Loopback IP subnet is not supported if enable_dhcp is True",
        Some(Flaw::Unspecified) if with_dhcp => {
            "First IP '0.0.0.0' of network is not supported if enable_dhcp is True."
        }
        Some(Flaw::Unspecified) if cidr.is_everything() => "0 is not allowed as CIDR prefix length",
        _ => return Ok(()),
    };
    Err(Reply::invalid(refusal))
}

/// Refuses a gateway of the wrong family, and the network and broadcast addresses of IPv4.
pub(super) fn check_gateway(gateway: Option<IpAddr>, cidr: Cidr) -> Result<(), Reply> {
    let Some(gateway) = gateway else { return Ok(()) };
    let version = cidr.ip_version();
    if gateway.is_ipv4() != (version == 4) {
        let message = format!("gateway_ip '{gateway}' does not match the ip_version '{version}'");
        return Err(Reply::invalid(message));
    }
    if cidr.contains(gateway) && !cidr.can_have_gateway(gateway) {
        return Err(Reply::invalid("Gateway is not valid on subnet"));
    }
    Ok(())
}

/// Refuses a gateway that hosts could have.
pub(super) fn check_gateway_in_pools(gateway: Option<IpAddr>, pools: &[AllocationPool]) -> Result<(), Reply> {
    let Some(gateway) = gateway else { return Ok(()) };
    match pools.iter().find(|pool| (pool.start..=pool.end).contains(&gateway)) {
        None => Ok(()),
        Some(AllocationPool { start, end }) => {
            let message = format!("Gateway ip {gateway} conflicts with allocation pool {start}-{end}.");
            Err(Reply::error(409, "GatewayConflictWithAllocationPools", message))
        }
    }
}

/// Reads pools. Pools must be disjoint, and inside of the block.
pub(super) fn read_pools(values: &[Value], cidr: Cidr) -> Result<Vec<AllocationPool>, Reply> {
    let mut pools: Vec<AllocationPool> = Vec::with_capacity(values.len());
    for value in values {
        let AllocationPool { start, end } = read_pool(value, cidr)?;
        if let Some(other) = pools.iter().find(|other| other.start <= end && start <= other.end) {
            let pools = format!("{}-{} {start}-{end}", other.start, other.end);
            let message = format!("Found overlapping allocation pools: {pools} for subnet {cidr}.");
            return Err(Reply::error(409, "OverlappingAllocationPools", message));
        }
        pools.push(AllocationPool { start, end });
    }
    Ok(pools)
}

fn read_pool(value: &Value, cidr: Cidr) -> Result<AllocationPool, Reply> {
    let (start, end) = (address(&value["start"])?, address(&value["end"])?);
    if start > end || start.is_ipv4() != end.is_ipv4() {
        let message = format!("The allocation pool {{'end': '{end}', 'start': '{start}'}} is not valid.");
        return Err(Reply::error(400, "InvalidAllocationPool", message));
    }
    if [start, end].iter().any(|address| !cidr.contains(*address) || !cidr.has_host(*address)) {
        let message = format!("The allocation pool {start}-{end} spans beyond the subnet cidr {cidr}.");
        return Err(Reply::error(400, "OutOfBoundsAllocationPool", message));
    }
    Ok(AllocationPool { start, end })
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
