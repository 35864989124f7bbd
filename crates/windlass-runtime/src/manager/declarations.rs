//! The declarations of a manager beside the controllers: the input of generated manifests.

use super::{
    Manager,
    permissions::{LEADER_ELECTION, METRICS},
};
use crate::{permission::Permissions, webhook_declaration::WebhookServerDeclaration};

/// The declaration of leader election. See [`Manager::election`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ElectionDeclaration {
    /// The name of the Lease.
    pub lease: String,
    /// The namespace of the Lease; `None` for that of the operator.
    pub namespace: Option<String>,
    /// The rights that only leader election needs.
    pub permissions: Permissions,
}

/// The declaration of the metrics endpoint. See [`Manager::served_metrics`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MetricsDeclaration {
    /// The port.
    pub port: u16,
    /// True if the endpoint is served over HTTPS.
    pub secure: bool,
    /// The rights that only the endpoint needs: to review tokens, and the rights of readers.
    pub permissions: Permissions,
}

impl Manager {
    /// Returns the declarations of the servers of [`webhooks`](Self::webhooks).
    pub fn webhook_servers(&self) -> &[WebhookServerDeclaration] {
        &self.webhook_servers
    }

    /// Returns the declaration of leader election, if a leader is elected.
    pub fn election(&self) -> Option<ElectionDeclaration> {
        let election = self.leader_election.as_ref()?;
        Some(ElectionDeclaration {
            lease: election.lease_name().to_owned(),
            namespace: election.own_namespace().map(ToOwned::to_owned),
            permissions: self.permissions().only_of(LEADER_ELECTION),
        })
    }

    /// Returns the declaration of the metrics endpoint, if metrics are served.
    pub fn served_metrics(&self) -> Option<MetricsDeclaration> {
        let permissions = || self.permissions().only_of(METRICS);
        let of = |port, secure| MetricsDeclaration { port, secure, permissions: permissions() };
        match (&self.secure_metrics, self.metrics_address) {
            (Some(metrics), _) => Some(of(metrics.port(), true)),
            (None, Some(address)) => Some(of(address.port(), false)),
            (None, None) => None,
        }
    }

    /// Returns the port of the health endpoints, if the endpoints are served.
    pub fn health_port(&self) -> Option<u16> {
        self.health_address.map(|address| address.port())
    }

    /// Returns the rights that the operator always needs: [`permissions`](Self::permissions) without the
    /// rights that only leader election or the metrics endpoint needs.
    pub fn own_permissions(&self) -> Permissions {
        self.permissions().without(&[LEADER_ELECTION, METRICS])
    }
}
