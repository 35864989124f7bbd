//! Settings of self-issued certificates.

use std::time::Duration;

use crate::certificates::{CertificateDurations, Rotation, ServedAt};

/// Certificates that the operator issues for its webhooks.
///
/// The replicas share the certificates in a Secret. The authorities are written into the `caBundle` of every
/// webhook configuration and CustomResourceDefinition that calls the webhooks at this location. The operator
/// needs these rights:
///
/// | resource | verbs |
/// |---|---|
/// | `secrets`, in the namespace of the Secret | `get`, `create`, `patch` |
/// | `mutatingwebhookconfigurations`, `validatingwebhookconfigurations` | `list`, `patch` |
/// | `customresourcedefinitions`, of converted kinds | `get`, `patch` |
#[derive(Clone, Debug)]
pub struct SelfIssued {
    location: ServedAt,
    secret: Option<String>,
    secret_namespace: Option<String>,
    names: Vec<String>,
    lifetimes: CertificateDurations,
    interval: Duration,
}

impl SelfIssued {
    /// Issues certificates for a service, as in a cluster.
    pub fn for_service(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::new(ServedAt::Service { namespace: namespace.into(), name: name.into() })
    }

    /// Issues certificates for a host name or IP address, for an operator that runs outside of the cluster.
    pub fn for_host(host: impl Into<String>, port: u16) -> Self {
        Self::new(ServedAt::Url { host: host.into(), port })
    }

    fn new(location: ServedAt) -> Self {
        Self {
            location,
            secret: None,
            secret_namespace: None,
            names: Vec::new(),
            lifetimes: CertificateDurations::default(),
            interval: Duration::from_secs(10),
        }
    }

    /// Sets the Secret. Default: `webhook-server-cert`, in the namespace of the service, or in `default`
    /// without a service.
    pub fn secret(mut self, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        self.secret = Some(name.into());
        self.secret_namespace = Some(namespace.into());
        self
    }

    /// Adds DNS names and IP addresses to the certificate.
    pub fn names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the lives of the authorities and certificates.
    pub fn lifetimes(mut self, lifetimes: CertificateDurations) -> Self {
        self.lifetimes = lifetimes;
        self
    }

    /// Sets the time between two looks at the cluster. Default: 10 s.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Returns the time between two looks at the cluster.
    pub fn check_interval(&self) -> Duration {
        self.interval
    }

    /// Returns where the API server reaches the webhooks.
    pub fn location(&self) -> &ServedAt {
        &self.location
    }

    /// Returns the namespace and the name of the Secret.
    pub fn secret_name(&self) -> (&str, &str) {
        let own = match &self.location {
            ServedAt::Service { namespace, .. } => namespace,
            ServedAt::Url { .. } => "default",
        };
        let name = self.secret.as_deref().unwrap_or("webhook-server-cert");
        (self.secret_namespace.as_deref().unwrap_or(own), name)
    }

    /// Returns the state machine.
    pub fn rotation(&self) -> Rotation {
        Rotation::new(self.location.clone(), self.lifetimes).names(self.names.clone())
    }
}
