//! The custom resource `IPAddress`: the record of an address that a claim has.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

/// An address of a claim. The name of the object is the address: the server has only one object for each
/// address.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[kube(
    group = "tsi.tiduyun.com",
    version = "v1alpha1",
    kind = "IPAddress",
    plural = "ipaddresses",
    shortname = "poolip"
)]
#[kube(printcolumn = r#"{"name": "Address", "type": "string", "jsonPath": ".spec.address"}"#)]
#[kube(printcolumn = r#"{"name": "Pool", "type": "string", "jsonPath": ".spec.pool"}"#)]
#[kube(printcolumn = r#"{"name": "Namespace", "type": "string", "jsonPath": ".spec.claim.namespace"}"#)]
#[kube(printcolumn = r#"{"name": "Claim", "type": "string", "jsonPath": ".spec.claim.name"}"#)]
pub struct IPAddressSpec {
    /// The address, for people. The name of the object decides, because the name cannot change.
    pub address: String,
    /// The pool of the address.
    pub pool: String,
    /// The claim that holds the address.
    pub claim: ClaimReference,
}

/// A claim. The uid distinguishes the claim from an earlier claim with the same name.
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

impl IPAddress {
    /// Returns the address in the name, or `None` if the name is not an address.
    ///
    /// ```
    /// # use ip_pool::{ClaimReference, IPAddress, IPAddressSpec};
    /// # let claim = ClaimReference { namespace: "default".to_owned(), name: "a".to_owned(), uid: String::new() };
    /// # let spec = IPAddressSpec { address: "10.0.0.9".to_owned(), pool: "office".to_owned(), claim };
    /// let named = |name: &str| IPAddress::new(name, spec.clone()).address();
    /// assert_eq!(named("fd00-0000-0000-0000-0000-0000-0000-0001"), "fd00::1".parse().ok());
    /// assert_eq!(named("an-address"), None);
    /// ```
    pub fn address(&self) -> Option<IpAddr> {
        let name = self.metadata.name.as_deref()?;
        let address = name.replace('-', ":").parse().ok()?;
        (name_of(address) == name).then_some(address)
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
