//! The API server's configurations of webhooks.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use k8s_openapi::ByteString;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_codegen::WebhooksDeclaration;

/// Where webhooks are served.
pub(super) struct Endpoint {
    /// The URL, without a path.
    pub(super) base: String,
    /// The authority that has signed the server's certificate, PEM.
    pub(super) authority: Vec<u8>,
}

/// A configuration of admission webhooks.
pub(super) trait Configuration:
    Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned
{
    /// Returns the URLs of the webhooks. A webhook behind a service has none.
    fn urls(&self) -> impl Iterator<Item = &str>;
}

impl Configuration for MutatingWebhookConfiguration {
    fn urls(&self) -> impl Iterator<Item = &str> {
        self.webhooks.iter().flatten().filter_map(|webhook| webhook.client_config.url.as_deref())
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    fn urls(&self) -> impl Iterator<Item = &str> {
        self.webhooks.iter().flatten().filter_map(|webhook| webhook.client_config.url.as_deref())
    }
}

/// The API server's configurations of webhooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Configurations {
    pub(super) mutating: Option<MutatingWebhookConfiguration>,
    pub(super) validating: Option<ValidatingWebhookConfiguration>,
    /// The conversions (`spec.conversion`), by the name of the CRD.
    pub(super) conversions: BTreeMap<String, Value>,
}

impl Configurations {
    /// Makes the configurations of an operator's webhooks at an endpoint.
    pub(super) fn of(name: &str, webhooks: &WebhooksDeclaration, endpoint: &Endpoint) -> Self {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let mutating: Vec<_> = webhooks
            .mutating
            .iter()
            .cloned()
            .map(|mut webhook| {
                webhook.client_config = endpoint.instead_of(&webhook.client_config);
                webhook
            })
            .collect();
        let validating: Vec<_> = webhooks
            .validating
            .iter()
            .cloned()
            .map(|mut webhook| {
                webhook.client_config = endpoint.instead_of(&webhook.client_config);
                webhook
            })
            .collect();
        let conversions = webhooks.conversions.iter().map(|conversion| {
            let name = format!("{}.{}", conversion.plural, conversion.group);
            (name, endpoint.conversion(&conversion.path))
        });
        Self {
            conversions: conversions.collect(),
            mutating: (!mutating.is_empty()).then(|| MutatingWebhookConfiguration {
                metadata: metadata.clone(),
                webhooks: Some(mutating),
            }),
            validating: (!validating.is_empty())
                .then_some(ValidatingWebhookConfiguration { metadata, webhooks: Some(validating) }),
        }
    }

    /// Returns the configurations that `others` does not have.
    pub(super) fn without(&self, others: &Self) -> Self {
        let mut left = self.clone();
        left.mutating.take_if(|_| others.mutating.is_some());
        left.validating.take_if(|_| others.validating.is_some());
        left.conversions.retain(|name, _| !others.conversions.contains_key(name));
        left
    }
}

impl fmt::Display for Configurations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mutating = self.mutating.iter().flat_map(|configuration| configuration.webhooks.iter().flatten());
        let validating =
            self.validating.iter().flat_map(|configuration| configuration.webhooks.iter().flatten());
        let names = mutating.map(|webhook| webhook.name.clone());
        let names = names.chain(validating.map(|webhook| webhook.name.clone()));
        let conversions = self.conversions.keys().map(|name| format!("conversion of {name}"));
        f.write_str(&names.chain(conversions).collect::<Vec<_>>().join(", "))
    }
}

impl Endpoint {
    /// Returns whether a URL belongs to this endpoint.
    pub(super) fn serves(&self, url: &str) -> bool {
        url.strip_prefix(&self.base).is_some_and(|path| path.is_empty() || path.starts_with('/'))
    }

    /// Returns this endpoint with the path of a declared webhook.
    fn instead_of(&self, declared: &WebhookClientConfig) -> WebhookClientConfig {
        let of_service = declared.service.as_ref().and_then(|service| service.path.clone());
        let path = of_service.unwrap_or_else(|| {
            let url = declared.url.as_deref().and_then(|url| url.parse::<http::Uri>().ok());
            url.map(|url| url.path().to_owned()).unwrap_or_default()
        });
        WebhookClientConfig {
            ca_bundle: Some(ByteString(self.authority.clone())),
            service: None,
            url: Some(format!("{}{path}", self.base)),
        }
    }

    fn conversion(&self, path: &str) -> Value {
        json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {
                    "url": format!("{}{path}", self.base),
                    "caBundle": ByteString(self.authority.clone()),
                },
                "conversionReviewVersions": ["v1"],
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use windlass_codegen::ConversionDeclaration;

    use super::*;

    fn webhooks() -> WebhooksDeclaration {
        let mutating = json!([{
            "name": "mbar.kb.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": { "namespace": "system", "name": "webhook-service", "path": "/mutate-bar" } },
        }]);
        let conversion = ConversionDeclaration {
            group: "foo.abc.com".to_owned(),
            plural: "bars".to_owned(),
            path: "/convert".to_owned(),
            ..ConversionDeclaration::default()
        };
        WebhooksDeclaration {
            mutating: serde_json::from_value(mutating).expect("webhooks"),
            conversions: vec![conversion],
            ..WebhooksDeclaration::default()
        }
    }

    fn configurations(webhooks: &WebhooksDeclaration) -> Configurations {
        let endpoint = Endpoint { base: "https://127.0.0.1:9".to_owned(), authority: b"pem".to_vec() };
        Configurations::of("demo-local", webhooks, &endpoint)
    }

    #[test]
    fn each_webhook_keeps_its_path_and_is_called_here() {
        let made = configurations(&webhooks());
        let mutating = made.mutating.as_ref().expect("a configuration");
        assert_eq!(mutating.metadata.name.as_deref(), Some("demo-local"));
        let config = &mutating.webhooks.as_ref().expect("webhooks")[0].client_config;
        assert_eq!(config.url.as_deref(), Some("https://127.0.0.1:9/mutate-bar"));
        assert!(config.service.is_none() && config.ca_bundle.is_some());
        assert_eq!(made.validating, None);
        let client = &made.conversions["bars.foo.abc.com"]["webhook"]["clientConfig"];
        assert_eq!(client["url"], "https://127.0.0.1:9/convert");
        assert_eq!(client["caBundle"], "cGVt");
        assert_eq!(made.to_string(), "mbar.kb.io, conversion of bars.foo.abc.com");
    }

    #[test]
    fn a_longer_port_is_that_of_another_endpoint() {
        let endpoint = Endpoint { base: "https://127.0.0.1:400".to_owned(), authority: Vec::new() };
        assert!(endpoint.serves("https://127.0.0.1:400/convert") && endpoint.serves("https://127.0.0.1:400"));
        assert!(!endpoint.serves("https://127.0.0.1:4000/convert"));
    }

    #[test]
    fn what_the_next_build_does_not_declare_is_removed() {
        let (before, after) = (configurations(&webhooks()), configurations(&WebhooksDeclaration::default()));
        assert_eq!(before.without(&after), before);
        assert_eq!(before.without(&before), Configurations::default());
    }
}
