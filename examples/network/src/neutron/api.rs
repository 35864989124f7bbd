//! Networks and subnets on the wire.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Cidr;

/// A network.
#[derive(Deserialize, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Network {
    /// The ID, a UUID that Neutron makes.
    pub id: String,
    /// The name. Several networks may have the same.
    pub name: String,
    /// A text for people; this operator writes the owner of the network.
    #[serde(default)]
    pub description: String,
    /// True if the network forwards packets.
    pub admin_state_up: bool,
    /// `ACTIVE` and other values.
    pub status: String,
    /// The IDs of the network's subnets.
    #[serde(default)]
    pub subnets: Vec<String>,
    /// The time of creation, in RFC 3339.
    #[serde(default)]
    pub created_at: Option<String>,
}

/// A network to create.
#[derive(Serialize, Clone, Debug)]
pub struct NewNetwork {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
}

/// A change of a network: the fields that are given.
#[derive(Serialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkChange {
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if the network forwards packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
}

/// A subnet.
#[derive(Deserialize, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subnet {
    /// The ID, a UUID that Neutron makes.
    pub id: String,
    /// The name.
    pub name: String,
    /// The ID of the network.
    pub network_id: String,
    /// The addresses.
    pub cidr: String,
    /// The gateway, if the subnet has a gateway.
    pub gateway_ip: Option<IpAddr>,
    /// The addresses that hosts can have.
    #[serde(default)]
    pub allocation_pools: Vec<AllocationPool>,
    /// True if hosts get addresses by DHCP.
    pub enable_dhcp: bool,
}

/// A range of addresses, both ends included.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllocationPool {
    /// The first address.
    pub start: IpAddr,
    /// The last address.
    pub end: IpAddr,
}

impl AllocationPool {
    /// Returns the hosts of a block, except the gateway.
    pub(crate) fn without_gateway(cidr: Cidr, gateway: IpAddr) -> Vec<Self> {
        cidr.hosts_without(gateway).map(|(start, end)| Self { start, end }).collect()
    }
}

/// A subnet to create.
#[derive(Serialize, Clone, Debug)]
pub struct NewSubnet {
    /// The ID of the network.
    pub network_id: String,
    /// The name.
    pub name: String,
    /// The addresses.
    pub cidr: String,
    /// The gateway.
    pub gateway_ip: IpAddr,
    /// 4 or 6.
    pub ip_version: u8,
}

/// A change of a subnet: the given fields. The CIDR cannot change.
#[derive(Serialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetChange {
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_ip: Option<IpAddr>,
    /// The addresses of hosts; the gateway must be outside of the pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_pools: Option<Vec<AllocationPool>>,
    /// True if hosts get addresses by DHCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_dhcp: Option<bool>,
}
