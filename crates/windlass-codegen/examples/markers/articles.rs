//! The kinds of the articles, as in `xtask/src/controller_gen/go/articles`.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "zhhnzw.mock.com", version = "v1", kind = "CustomPod", namespaced, status = "CustomPodStatus")]
#[kube(doc = "CustomPod keeps pods.")]
pub(crate) struct CustomPodSpec {
    /// How many pods to keep.
    pub(crate) replicas: i64,
}

/// The observed state.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CustomPodStatus {
    /// How many pods there are.
    pub(crate) replicas: i64,
    /// Their names.
    pub(crate) pod_names: Vec<String>,
}

/// The desired state.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "tsi.tiduyun.com",
    version = "v1",
    kind = "IPPool",
    plural = "ippools",
    status = "IPPoolStatus"
)]
#[kube(doc = "IPPool is a pool of addresses.")]
pub(crate) struct IPPoolSpec {
    /// The addresses.
    pub(crate) cidr: String,
    /// Addresses that are never handed out.
    pub(crate) reserved: Option<Vec<String>>,
}

/// The observed state.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub(crate) struct IPPoolStatus {
    /// The allocated addresses, with the owner of each address.
    pub(crate) allocated: Option<BTreeMap<String, String>>,
}

/// The desired state.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "samplecrd.k8s.io",
    version = "v1",
    kind = "Network",
    namespaced,
    doc = "Network is a network."
)]
#[kube(annotation("api-approved.kubernetes.io", "unapproved"))]
pub(crate) struct NetworkSpec {
    /// The addresses.
    pub(crate) cidr: String,
    /// The address of the gateway.
    pub(crate) gateway: String,
}

/// The desired state.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "foo.abc.com", version = "v1", kind = "Bar", namespaced, status = "BarStatus")]
#[kube(doc = "Bar is the schema of an API.")]
pub(crate) struct BarSpec {
    /// An example field.
    pub(crate) foo: Option<String>,
}

/// The observed state.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub(crate) struct BarStatus {}
