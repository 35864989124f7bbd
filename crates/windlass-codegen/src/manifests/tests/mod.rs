mod crds;
mod files;
mod kustomize;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            MutatingWebhook, RuleWithOperations, ServiceReference, ValidatingWebhook, WebhookClientConfig,
        },
        rbac::v1::PolicyRule,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Component, Manifests, Options};
use crate::{
    ConversionDeclaration, ElectionDeclaration, Inventory, MetricsDeclaration, Rights, WebhooksDeclaration,
    inventory::CertificateOrigin,
};

mod v1 {
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    /// A website.
    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(group = "web.example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
    #[kube(shortname = "ws", category = "all", storage = false, deprecated = "use v2")]
    #[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"))]
    #[kube(selectable = ".spec.host", annotation("team", "web"))]
    pub(super) struct WebsiteSpec {
        /// The number of servers: "0" turns the website off.
        pub(super) replicas: u32,
        /// The host.
        #[serde(default)]
        pub(super) host: String,
    }

    #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
    pub(super) struct WebsiteStatus {
        replicas: u32,
    }
}

mod v2 {
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    /// A website.
    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(group = "web.example.com", version = "v2", kind = "Website", namespaced)]
    #[kube(shortname = "ws", category = "all", label("tier", "front"))]
    pub(super) struct WebsiteSpec {
        /// The hosts.
        pub(super) hosts: Vec<String>,
    }
}

/// The definitions of both versions.
fn crds() -> Vec<CustomResourceDefinition> {
    vec![v2::Website::crd(), v1::Website::crd()]
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    }
}

fn conversion() -> ConversionDeclaration {
    ConversionDeclaration {
        group: "web.example.com".to_owned(),
        kind: "Website".to_owned(),
        plural: "websites".to_owned(),
        versions: vec!["v1".to_owned(), "v2".to_owned()],
        hub: "v2".to_owned(),
        path: "/convert".to_owned(),
    }
}

fn client_config(path: &str) -> WebhookClientConfig {
    let service = ServiceReference { path: Some(path.to_owned()), ..ServiceReference::default() };
    WebhookClientConfig { service: Some(service), ..WebhookClientConfig::default() }
}

fn webhooks() -> WebhooksDeclaration {
    let rules = vec![RuleWithOperations {
        api_groups: Some(vec!["web.example.com".to_owned()]),
        api_versions: Some(vec!["v2".to_owned()]),
        operations: Some(vec!["CREATE".to_owned(), "UPDATE".to_owned()]),
        resources: Some(vec!["websites".to_owned()]),
        scope: None,
    }];
    WebhooksDeclaration {
        port: 9443,
        certificates: CertificateOrigin::Files,
        service: None,
        mutating: vec![MutatingWebhook {
            admission_review_versions: vec!["v1".to_owned()],
            client_config: client_config("/mutate"),
            name: "mwebsite-v2.kb.io".to_owned(),
            rules: Some(rules.clone()),
            side_effects: "None".to_owned(),
            ..MutatingWebhook::default()
        }],
        validating: vec![ValidatingWebhook {
            admission_review_versions: vec!["v1".to_owned()],
            client_config: client_config("/validate"),
            name: "vwebsite-v2.kb.io".to_owned(),
            rules: Some(rules),
            side_effects: "None".to_owned(),
            ..ValidatingWebhook::default()
        }],
        conversions: vec![conversion()],
    }
}

/// An operator with everything.
pub(crate) fn full() -> Inventory {
    Inventory {
        format: Inventory::FORMAT,
        name: "web-operator".to_owned(),
        crds: crds(),
        rights: Rights {
            cluster: vec![rule("web.example.com", "websites", &["list", "watch"])],
            operator: vec![rule("", "secrets", &["get"])],
            namespaces: BTreeMap::from([("infra".to_owned(), vec![rule("", "configmaps", &["get"])])]),
        },
        election: Some(ElectionDeclaration {
            lease: "web".to_owned(),
            rights: Rights {
                operator: vec![rule("coordination.k8s.io", "leases", &["create"])],
                ..Rights::default()
            },
        }),
        metrics: Some(MetricsDeclaration {
            port: 8443,
            secure: true,
            rights: Rights {
                cluster: vec![rule("authentication.k8s.io", "tokenreviews", &["create"])],
                ..Rights::default()
            },
        }),
        health_port: Some(8081),
        webhooks: Some(webhooks()),
        ..Inventory::default()
    }
}

/// An operator with a kind and without webhooks.
pub(crate) fn small() -> Inventory {
    Inventory { crds: vec![v2::Website::crd()], webhooks: None, ..full() }
}

/// All optional components.
pub(crate) fn everything() -> Options {
    let mut options = Options::new("web-operator");
    options.components = Component::ALL.into();
    options
}

fn manifests(inventory: &Inventory, options: Options) -> Manifests {
    Manifests::new(inventory, options).expect("no contradiction")
}
