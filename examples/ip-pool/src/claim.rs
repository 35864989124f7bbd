//! The custom resource `IPClaim`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{conditions::Condition, prelude::*};

/// Asks for an address of a pool. The address is released when the claim is gone.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[kube(group = "tsi.tiduyun.com", version = "v1alpha1", kind = "IPClaim", plural = "ipclaims", namespaced)]
#[kube(status = "IPClaimStatus")]
#[kube(printcolumn = r#"{"name": "Pool", "type": "string", "jsonPath": ".spec.pool"}"#)]
#[kube(printcolumn = r#"{"name": "Address", "type": "string", "jsonPath": ".status.address"}"#)]
#[kube(
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Bound')].reason"}"#
)]
pub struct IPClaimSpec {
    /// The name of the pool.
    pub pool: String,
    /// The wanted address. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// The address of a claim.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct IPClaimStatus {
    /// The address that the claim has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The condition `Bound`. Without an address, the condition has the reason.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}
