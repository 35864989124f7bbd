//! What an operator declares, as its command `manifests` prints it.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhook, ValidatingWebhook},
        rbac::v1::PolicyRule,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde::{Deserialize, Serialize};

/// What an operator declares: the input of all generated manifests.
///
/// Every operator prints it as JSON with its hidden command `manifests`, without asking a cluster:
///
/// ```
/// let printed = r#"{"format": 1, "name": "web-operator", "controllers": [{"name": "website"}]}"#;
/// let inventory = windlass_codegen::Inventory::parse(printed).unwrap();
/// assert_eq!(inventory.controllers[0].name, "website");
/// ```
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Inventory {
    /// The version of this format: [`Inventory::FORMAT`].
    pub format: u32,
    /// The name of the program.
    pub name: String,
    /// The definitions that were added with `Manager::crd`: one for each version of a kind.
    pub crds: Vec<CustomResourceDefinition>,
    /// The samples that were added with `Manager::sample`, as YAML.
    pub samples: Vec<String>,
    /// The controllers.
    pub controllers: Vec<ControllerItem>,
    /// The rights that the operator needs in any case.
    pub rights: Rights,
    /// Leader election, if a leader is elected.
    pub election: Option<ElectionItem>,
    /// The metrics endpoint, if metrics are served.
    pub metrics: Option<MetricsItem>,
    /// The port of the health endpoints, if they are served.
    pub health_port: Option<u16>,
    /// The webhooks, if there are any.
    pub webhooks: Option<WebhooksItem>,
}

/// A controller.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerItem {
    /// Its name.
    pub name: String,
    /// The kinds that it watches, in the order in which they were declared.
    pub watches: Vec<WatchItem>,
}

/// A kind that a controller watches.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct WatchItem {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name of the resource.
    pub plural: String,
}

/// Rules for roles, by the place where they hold.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Rights {
    /// The rules that hold everywhere: of a ClusterRole.
    pub cluster: Vec<PolicyRule>,
    /// The rules of a Role in the namespace that the operator runs in.
    pub operator: Vec<PolicyRule>,
    /// The rules of Roles in other namespaces.
    pub namespaces: BTreeMap<String, Vec<PolicyRule>>,
}

/// Leader election.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ElectionItem {
    /// The name of the Lease.
    pub lease: String,
    /// The rights that only leader election needs.
    pub rights: Rights,
}

/// The metrics endpoint.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsItem {
    /// The port.
    pub port: u16,
    /// Whether metrics are served over HTTPS.
    pub secure: bool,
    /// The rights that only the endpoint needs.
    pub rights: Rights,
}

/// The webhooks and their server.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhooksItem {
    /// The port that the server listens on.
    pub port: u16,
    /// Where the server's certificate comes from.
    pub certificates: CertificateOrigin,
    /// The service that a self-issued certificate names; `None` if any will do.
    pub service: Option<ServiceItem>,
    /// The mutating webhooks. The service in their `clientConfig` is a placeholder; its path counts.
    pub mutating: Vec<MutatingWebhook>,
    /// The validating webhooks. The service in their `clientConfig` is a placeholder; its path counts.
    pub validating: Vec<ValidatingWebhook>,
    /// The kinds that are converted.
    pub conversions: Vec<ConversionItem>,
}

/// Where the certificate of the webhook server comes from.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum CertificateOrigin {
    /// From files that something else writes, such as a Secret of cert-manager.
    #[default]
    Files,
    /// The operator issues it, and writes the authority where the webhooks are configured.
    SelfIssued,
}

/// The service of the webhook server.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceItem {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A kind that is converted between its versions.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ConversionItem {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The plural name of the resource.
    pub plural: String,
    /// The versions, the hub among them.
    pub versions: Vec<String>,
    /// The version that all others are converted through, and that is stored.
    pub hub: String,
    /// The path at which conversions are served.
    pub path: String,
}

impl Inventory {
    /// The version of the format that this crate writes and reads.
    pub const FORMAT: u32 = 1;

    /// Reads what an operator printed.
    ///
    /// # Errors
    ///
    /// The text is not an inventory, or one of another version.
    pub fn parse(text: &str) -> Result<Self, String> {
        let inventory: Self =
            serde_json::from_str(text).map_err(|error| format!("not an inventory: {error}"))?;
        if inventory.format == Self::FORMAT {
            return Ok(inventory);
        }
        Err(format!(
            "the operator prints an inventory of format {}, and this is windlass of format {}: use the same version of the crate \
             `windlass` and the command",
            inventory.format,
            Self::FORMAT
        ))
    }
}

impl Rights {
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.cluster.is_empty() && self.operator.is_empty() && self.namespaces.values().all(Vec::is_empty)
    }
}
