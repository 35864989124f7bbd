//! `caBundle`s: the authorities that the API server trusts for webhooks.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::authority::read_bundle;

/// Where the API server reaches the webhooks of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedAt {
    /// Through a service, as in a cluster.
    Service {
        /// The namespace of the service.
        namespace: String,
        /// The name of the service.
        name: String,
    },
    /// At an address that clients resolve, such as `192.168.1.5:9443`, for an operator that runs outside of the cluster.
    Url {
        /// The host name or IP address, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

impl ServedAt {
    /// Returns the names that a certificate for this location must have.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name } => {
                vec![format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")]
            }
            Self::Url { host, .. } => vec![host.clone()],
        }
    }

    /// Returns whether a `clientConfig` names this location.
    fn is(&self, client_config: &Value) -> bool {
        match self {
            Self::Service { namespace, name } => {
                let service = &client_config["service"];
                service["namespace"] == namespace.as_str() && service["name"] == name.as_str()
            }
            Self::Url { host, port } => {
                let url = client_config["url"].as_str().unwrap_or_default().parse::<http::Uri>().ok();
                url.is_some_and(|url| {
                    let named = url.host().unwrap_or_default();
                    let named =
                        named.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(named);
                    named.eq_ignore_ascii_case(host) && url.port_u16().unwrap_or(443) == *port
                })
            }
        }
    }
}

/// The `caBundle`s of one object for a location: a `MutatingWebhookConfiguration`, a `ValidatingWebhookConfiguration` or a
/// `CustomResourceDefinition`.
#[derive(Clone, Copy, Debug)]
pub struct CaBundle<'a> {
    location: &'a ServedAt,
    object: &'a Value,
}

/// A `clientConfig` of ours.
struct Entry<'a> {
    /// The JSON pointer of the `clientConfig`.
    pointer: String,
    /// A test operation: the patch fails if the object has changed meanwhile.
    test: Value,
    client_config: &'a Value,
}

impl<'a> CaBundle<'a> {
    /// Finds the `caBundle`s in an object from the API server.
    pub fn of(location: &'a ServedAt, object: &'a Value) -> Self {
        Self { location, object }
    }

    fn entries(self) -> Vec<Entry<'a>> {
        let webhooks = self.object["webhooks"].as_array().into_iter().flatten().enumerate();
        let admission = webhooks.map(|(at, webhook)| Entry {
            pointer: format!("/webhooks/{at}/clientConfig"),
            test: json!({"op": "test", "path": format!("/webhooks/{at}/name"), "value": webhook["name"]}),
            client_config: &webhook["clientConfig"],
        });
        let conversion = &self.object["spec"]["conversion"];
        let conversion = (conversion["strategy"] == "Webhook").then(|| Entry {
            pointer: "/spec/conversion/webhook/clientConfig".to_owned(),
            test: json!({"op": "test", "path": "/spec/conversion/strategy", "value": "Webhook"}),
            client_config: &conversion["webhook"]["clientConfig"],
        });
        admission.chain(conversion).filter(|entry| self.location.is(entry.client_config)).collect()
    }

    /// Returns whether every `caBundle` of ours has this certificate.
    pub(super) fn has(self, authority: &[u8]) -> bool {
        self.entries().iter().all(|entry| bundle(entry.client_config).iter().any(|(der, _)| der == authority))
    }

    /// Returns a JSON patch that makes the API server trust the authorities, or `None` if no change is
    /// needed.
    ///
    /// Authorities that a bundle has and the Secret does not are kept until they expire: another replica may
    /// have added the authority.
    pub(super) fn patch(self, authorities: &[&[u8]], now: Timestamp) -> Option<Value> {
        let mut operations = Vec::new();
        for entry in self.entries() {
            let present = bundle(entry.client_config);
            let mut wanted: Vec<&[u8]> = authorities.to_vec();
            for (der, expires) in &present {
                if expires.is_some_and(|expires| now < expires) && !wanted.contains(&der.as_slice()) {
                    wanted.push(der);
                }
            }
            let is_same = wanted.len() == present.len()
                && present.iter().all(|(der, _)| wanted.contains(&der.as_slice()));
            if !is_same {
                let encoded = STANDARD.encode(pem(wanted));
                let path = format!("{}/caBundle", entry.pointer);
                operations.extend([entry.test, json!({"op": "add", "path": path, "value": encoded})]);
            }
        }
        (!operations.is_empty()).then_some(Value::Array(operations))
    }
}

/// Returns the certificates of a `caBundle`. An authority that this crate created has an expiry time.
fn bundle(client_config: &Value) -> Vec<(Vec<u8>, Option<Timestamp>)> {
    let encoded = client_config["caBundle"].as_str().unwrap_or_default();
    let certificates = read_bundle(&STANDARD.decode(encoded).unwrap_or_default());
    certificates
        .into_iter()
        .map(|(der, facts)| (der.to_vec(), facts.is_own_authority.then_some(facts.not_after)))
        .collect()
}

/// Encodes certificates.
pub(super) fn pem<'a>(certificates: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in STANDARD.encode(certificate).as_bytes().chunks(64) {
            text.push_str(str::from_utf8(line).unwrap_or_default());
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}
