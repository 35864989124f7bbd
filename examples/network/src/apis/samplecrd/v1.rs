//! The kind `Network` of `samplecrd.k8s.io/v1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{conditions::Condition, prelude::*};

/// A network in Neutron, with one subnet.
#[derive(CustomResource, ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(group = "samplecrd.k8s.io", version = "v1", kind = "Network", namespaced, status = "NetworkStatus")]
#[kube(annotation("api-approved.kubernetes.io", "unapproved, an example"))]
#[kube(printcolumn = r#"{"name": "CIDR", "type": "string", "jsonPath": ".spec.cidr"}"#)]
#[kube(printcolumn = r#"{"name": "Gateway", "type": "string", "jsonPath": ".spec.gateway"}"#)]
#[kube(
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[kube(
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct NetworkSpec {
    /// The addresses of the subnet, such as `192.168.0.0/16`. The addresses cannot change after the creation
    /// of the subnet.
    pub cidr: String,
    /// The address of the gateway, inside of the CIDR.
    pub gateway: String,
}

/// The observed state of the network in Neutron.
#[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// The ID of the network in Neutron.
    #[serde(default, rename = "networkID", skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// The ID of the subnet in Neutron.
    #[serde(default, rename = "subnetID", skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// The condition `Ready`: whether Neutron has the network as the spec says, or why not.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}
