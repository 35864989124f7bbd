//! Webhook configurations, made from the declarations of webhooks.
//!
//! ```
//! use std::convert::Infallible;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_webhook::{AdmissionContext, Webhooks, manifests::{Endpoint, mutating_configuration}};
//!
//! async fn default(config: ConfigMap, _: AdmissionContext) -> Result<ConfigMap, Infallible> {
//!     Ok(config)
//! }
//!
//! let webhooks = Webhooks::new().defaulter::<ConfigMap>(default);
//! let endpoint = Endpoint::service("ops", "webhook-service");
//! let configuration = mutating_configuration("hooks", &webhooks.admissions(), &endpoint).unwrap();
//! assert_eq!(configuration.webhooks.unwrap()[0].name, "mconfigmap-v1.kb.io");
//! ```

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
        ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as crd,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube_core::admission::Operation;

use crate::{
    certificates::ServedAt,
    declaration::{
        AdmissionDeclaration, AdmissionKind, ConversionDeclaration, FailurePolicy, MatchPolicy,
        ReinvocationPolicy, Rule, SideEffects,
    },
};

/// The address of the webhooks for the API server, and the trusted authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: Address,
    ca_bundle: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Service { namespace: String, name: String, port: Option<i32> },
    Url(String),
}

impl Endpoint {
    /// Reaches the webhooks through a service, at port 443 of the service.
    pub fn service(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let address = Address::Service { namespace: namespace.into(), name: name.into(), port: None };
        Self { address, ca_bundle: None }
    }

    /// Sets the port of the service.
    pub fn service_port(mut self, number: u16) -> Self {
        if let Address::Service { port, .. } = &mut self.address {
            *port = Some(number.into());
        }
        self
    }

    /// Reaches the webhooks below a URL, such as `https://192.168.1.5:9443`.
    pub fn url(base: impl Into<String>) -> Self {
        Self { address: Address::Url(base.into().trim_end_matches('/').to_owned()), ca_bundle: None }
    }

    /// Reaches the webhooks at a location with self-issued certificates.
    pub fn at(location: &ServedAt) -> Self {
        match location {
            ServedAt::Service { namespace, name } => Self::service(namespace, name),
            ServedAt::Url { host, port } if host.contains(':') => {
                Self::url(format!("https://[{host}]:{port}"))
            }
            ServedAt::Url { host, port } => Self::url(format!("https://{host}:{port}")),
        }
    }

    /// Sets the authorities that verify the server's certificate, in PEM. Do not call this method if another
    /// program writes the `caBundle`s: the rotation of self-issued certificates, or cert-manager.
    pub fn ca_bundle(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_bundle = Some(pem.into());
        self
    }

    fn client_config(&self, path: &str) -> WebhookClientConfig {
        let ca_bundle = self.ca_bundle.clone().map(ByteString);
        match &self.address {
            Address::Service { namespace, name, port } => WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    name: name.clone(),
                    namespace: namespace.clone(),
                    path: Some(path.to_owned()),
                    port: *port,
                }),
                url: None,
            },
            Address::Url(base) => {
                WebhookClientConfig { ca_bundle, service: None, url: Some(format!("{base}{path}")) }
            }
        }
    }
}

/// Makes a `MutatingWebhookConfiguration` of the mutating webhooks; `None` if there are none.
pub fn mutating_configuration(
    name: &str,
    webhooks: &[AdmissionDeclaration],
    endpoint: &Endpoint,
) -> Option<MutatingWebhookConfiguration> {
    let webhooks: Vec<MutatingWebhook> = webhooks
        .iter()
        .filter(|webhook| webhook.kind == AdmissionKind::Mutating)
        .map(|webhook| MutatingWebhook {
            admission_review_versions: review_versions(),
            client_config: endpoint.client_config(&webhook.path),
            failure_policy: Some(failure_policy(webhook.failure_policy)),
            match_conditions: match_conditions(webhook),
            match_policy: Some(match_policy(webhook.match_policy)),
            name: webhook.name.clone(),
            namespace_selector: webhook.namespace_selector.clone(),
            object_selector: webhook.object_selector.clone(),
            reinvocation_policy: Some(
                match webhook.reinvocation_policy {
                    ReinvocationPolicy::Never => "Never",
                    ReinvocationPolicy::IfNeeded => "IfNeeded",
                }
                .to_owned(),
            ),
            rules: Some(rules(webhook)),
            side_effects: side_effects(webhook.side_effects),
            timeout_seconds: Some(webhook.timeout_seconds),
        })
        .collect();
    (!webhooks.is_empty())
        .then(|| MutatingWebhookConfiguration { metadata: named(name), webhooks: Some(webhooks) })
}

/// Makes a `ValidatingWebhookConfiguration` of the validating webhooks; `None` if there are none.
pub fn validating_configuration(
    name: &str,
    webhooks: &[AdmissionDeclaration],
    endpoint: &Endpoint,
) -> Option<ValidatingWebhookConfiguration> {
    let webhooks: Vec<ValidatingWebhook> = webhooks
        .iter()
        .filter(|webhook| webhook.kind == AdmissionKind::Validating)
        .map(|webhook| ValidatingWebhook {
            admission_review_versions: review_versions(),
            client_config: endpoint.client_config(&webhook.path),
            failure_policy: Some(failure_policy(webhook.failure_policy)),
            match_conditions: match_conditions(webhook),
            match_policy: Some(match_policy(webhook.match_policy)),
            name: webhook.name.clone(),
            namespace_selector: webhook.namespace_selector.clone(),
            object_selector: webhook.object_selector.clone(),
            rules: Some(rules(webhook)),
            side_effects: side_effects(webhook.side_effects),
            timeout_seconds: Some(webhook.timeout_seconds),
        })
        .collect();
    (!webhooks.is_empty())
        .then(|| ValidatingWebhookConfiguration { metadata: named(name), webhooks: Some(webhooks) })
}

/// Makes the conversion stanza of a CustomResourceDefinition.
pub fn conversion_of(
    declaration: &ConversionDeclaration,
    endpoint: &Endpoint,
) -> crd::CustomResourceConversion {
    let client_config = endpoint.client_config(&declaration.path);
    let service = client_config.service.map(|service| crd::ServiceReference {
        name: service.name,
        namespace: service.namespace,
        path: service.path,
        port: service.port,
    });
    crd::CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(crd::WebhookConversion {
            client_config: Some(crd::WebhookClientConfig {
                ca_bundle: client_config.ca_bundle,
                service,
                url: client_config.url,
            }),
            conversion_review_versions: review_versions(),
        }),
    }
}

fn review_versions() -> Vec<String> {
    vec!["v1".to_owned()]
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn failure_policy(policy: FailurePolicy) -> String {
    match policy {
        FailurePolicy::Fail => "Fail",
        FailurePolicy::Ignore => "Ignore",
    }
    .to_owned()
}

fn match_policy(policy: MatchPolicy) -> String {
    match policy {
        MatchPolicy::Equivalent => "Equivalent",
        MatchPolicy::Exact => "Exact",
    }
    .to_owned()
}

fn side_effects(effects: SideEffects) -> String {
    match effects {
        SideEffects::None => "None",
        SideEffects::NoneOnDryRun => "NoneOnDryRun",
    }
    .to_owned()
}

fn match_conditions(
    webhook: &AdmissionDeclaration,
) -> Option<Vec<k8s_openapi::api::admissionregistration::v1::MatchCondition>> {
    (!webhook.match_conditions.is_empty()).then(|| webhook.match_conditions.clone())
}

fn rules(webhook: &AdmissionDeclaration) -> Vec<RuleWithOperations> {
    let rule = |rule: &Rule| RuleWithOperations {
        api_groups: Some(rule.groups.clone()),
        api_versions: Some(rule.versions.clone()),
        operations: Some(rule.operations.iter().map(operation).collect()),
        resources: Some(rule.resources.clone()),
        scope: None,
    };
    webhook.rules.iter().map(rule).collect()
}

fn operation(operation: &Operation) -> String {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::LabelSelector};

    use super::{Endpoint, validating_configuration};
    use crate::{AdmissionChange, AdmissionContext, AdmissionWebhook, Webhooks};

    #[test]
    fn selectors_and_conditions_limit_the_objects_of_a_webhook() {
        let allow = |_: AdmissionChange<ConfigMap>, _: AdmissionContext| async { Ok::<_, String>(()) };
        let labels = |value: &str| LabelSelector {
            match_labels: Some([("team".to_owned(), value.to_owned())].into()),
            ..LabelSelector::default()
        };
        let webhook = AdmissionWebhook::validator::<ConfigMap>(allow)
            .namespace_selector(labels("a"))
            .object_selector(labels("b"))
            .match_condition("no-leases", "request.resource.group != 'coordination.k8s.io'");
        let admissions = Webhooks::new().admission(webhook).admissions();
        let made = validating_configuration("validating", &admissions, &Endpoint::service("system", "hooks"));
        let webhooks = made.expect("a configuration").webhooks.expect("webhooks");
        assert_eq!(webhooks[0].namespace_selector, Some(labels("a")));
        assert_eq!(webhooks[0].object_selector, Some(labels("b")));
        let conditions = webhooks[0].match_conditions.as_ref().expect("conditions");
        assert_eq!(conditions[0].name, "no-leases");
    }
}
