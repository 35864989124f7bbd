//! The custom resource `IPAddress`: the record of an address that a claim has.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

/// An address that a claim has. Its name follows from the address, so the server creates only one object for each address.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[kube(group = "tsi.tiduyun.com", version = "v1alpha1", kind = "IPAddress", plural = "ipaddresses")]
#[kube(printcolumn = r#"{"name": "Address", "type": "string", "jsonPath": ".spec.address"}"#)]
#[kube(printcolumn = r#"{"name": "Pool", "type": "string", "jsonPath": ".spec.pool"}"#)]
#[kube(printcolumn = r#"{"name": "Namespace", "type": "string", "jsonPath": ".spec.claim.namespace"}"#)]
#[kube(printcolumn = r#"{"name": "Claim", "type": "string", "jsonPath": ".spec.claim.name"}"#)]
pub struct IPAddressSpec {
    /// The address.
    pub address: IpAddr,
    /// The pool that it was taken from.
    pub pool: String,
    /// The claim that has it.
    pub claim: ClaimReference,
}

/// A claim. The uid tells it from an earlier claim of its name.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct ClaimReference {
    /// The namespace of the claim.
    pub namespace: String,
    /// The name of the claim.
    pub name: String,
    /// The uid of the claim.
    pub uid: String,
}

impl ClaimReference {
    /// Returns the key of the claim.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(&self.namespace, &self.name)
    }
}

/// Returns the name of the object for an address: `10.0.0.1`, or all groups of an IPv6 address, since names have no colons.
///
/// ```
/// let name = |address: &str| ip_pool::name_of(address.parse().unwrap());
/// assert_eq!(name("10.0.0.1"), "10.0.0.1");
/// assert_eq!(name("fd00::1"), "fd00-0000-0000-0000-0000-0000-0000-0001");
/// ```
pub fn name_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let groups = address.segments().map(|group| format!("{group:04x}"));
            groups.join("-")
        }
    }
}
