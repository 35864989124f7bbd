//! The custom resource `IPPool`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{conditions::Condition, prelude::*, schema};

/// The addresses of a pool. All addresses of a pool are either IPv4 or IPv6.
#[schema]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "tsi.tiduyun.com",
    version = "v1alpha1",
    kind = "IPPool",
    plural = "ippools",
    status = "IPPoolStatus"
)]
#[kube(printcolumn = r#"{"name": "CIDRs", "type": "string", "jsonPath": ".spec.cidrs"}"#)]
#[kube(printcolumn = r#"{"name": "Allocated", "type": "integer", "jsonPath": ".status.allocated"}"#)]
#[kube(printcolumn = r#"{"name": "Available", "type": "integer", "jsonPath": ".status.available"}"#)]
#[kube(
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#
)]
pub struct IPPoolSpec {
    /// The networks of the pool, such as `10.0.0.0/24` or `fd00::/64`, including the first and the last
    /// address.
    #[schema(min_items = 1)]
    pub cidrs: Vec<String>,
    /// The excluded addresses: addresses, CIDRs, and ranges such as `10.0.0.1-10.0.0.9`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<String>,
}

/// The counts of a pool. A count that is too large for the field is the greatest number of the field.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct IPPoolStatus {
    /// The addresses of the CIDRs without the exclusions.
    #[serde(default)]
    pub total: i64,
    /// The addresses that claims have.
    #[serde(default)]
    pub allocated: i64,
    /// The addresses that can be given.
    #[serde(default)]
    pub available: i64,
    /// The allocated addresses that the pool no longer has: claims keep such addresses.
    #[serde(default)]
    pub outside: i64,
    /// `Ready`: whether addresses can be given. `Shrunk`: whether addresses in use are outside of the pool.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}
