//! The declarations of an operator. The operator's command `manifests` prints the declarations.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhook, ValidatingWebhook},
        rbac::v1::PolicyRule,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde::{Deserialize, Serialize};

/// The declarations of an operator: the input of all generated manifests.
///
/// Every operator prints the inventory as JSON with the hidden command `manifests`, and needs no cluster:
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
    pub controllers: Vec<ControllerDeclaration>,
    /// The rights that the operator needs in any case.
    pub rights: Rights,
    /// Leader election, if a leader is elected.
    pub election: Option<ElectionDeclaration>,
    /// The metrics endpoint, if metrics are served.
    pub metrics: Option<MetricsDeclaration>,
    /// The port of the health endpoints, if the endpoints are served.
    pub health_port: Option<u16>,
    /// The webhooks, if there are any.
    pub webhooks: Option<WebhooksDeclaration>,
}

/// A controller.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerDeclaration {
    /// Its name.
    pub name: String,
    /// The watched kinds, in the order of declaration.
    pub watches: Vec<WatchDeclaration>,
}

/// A kind that a controller watches.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct WatchDeclaration {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name of the resource.
    pub plural: String,
}

/// Rules for roles, by the scope of the rules.
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
pub struct ElectionDeclaration {
    /// The name of the Lease.
    pub lease: String,
    /// The rights that only leader election needs.
    pub rights: Rights,
}

/// The metrics endpoint.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsDeclaration {
    /// The port.
    pub port: u16,
    /// True if metrics are served over HTTPS.
    pub secure: bool,
    /// The rights that only the endpoint needs.
    pub rights: Rights,
}

/// The webhooks and the webhook server.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhooksDeclaration {
    /// The port that the server listens on.
    pub port: u16,
    /// Where the server's certificate comes from.
    pub certificates: CertificateOrigin,
    /// The service that a self-issued certificate names; `None` if any will do.
    pub service: Option<ServiceDeclaration>,
    /// The mutating webhooks. The service in `clientConfig` is a placeholder; only the path counts.
    pub mutating: Vec<MutatingWebhook>,
    /// The validating webhooks. The service in `clientConfig` is a placeholder; only the path counts.
    pub validating: Vec<ValidatingWebhook>,
    /// The kinds that are converted.
    pub conversions: Vec<ConversionDeclaration>,
}

/// Where the certificate of the webhook server comes from.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum CertificateOrigin {
    /// From files of another program, such as a Secret of cert-manager.
    #[default]
    Files,
    /// The operator issues the certificate, and writes the authority to the webhook configurations.
    SelfIssued,
}

/// The service of the webhook server.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceDeclaration {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A kind with conversion between versions.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ConversionDeclaration {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The plural name of the resource.
    pub plural: String,
    /// The versions, including the hub.
    pub versions: Vec<String>,
    /// The storage version. All conversions go through this version.
    pub hub: String,
    /// The path of the conversion webhook.
    pub path: String,
}

impl Inventory {
    /// The version of the format that this crate writes and reads.
    pub const FORMAT: u32 = 1;

    /// Parses the output of an operator.
    ///
    /// # Errors
    ///
    /// The text is not an inventory, or the inventory of another version.
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
    /// Returns whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.cluster.is_empty() && self.operator.is_empty() && self.namespaces.values().all(Vec::is_empty)
    }
}
