//! The hidden command `manifests`.

use std::io::{self, Write};

use windlass_codegen::{
    CertificateOrigin, ControllerDeclaration, ConversionDeclaration, ElectionDeclaration, Inventory,
    MetricsDeclaration, Rights, ServiceDeclaration, WatchDeclaration, WebhooksDeclaration,
};
use windlass_runtime::{
    Manager, Result,
    manager::{self, WebhookServerDeclaration},
    permission::Permissions,
    webhook::{
        self, CertificateSource,
        certificates::ServedAt,
        manifests::{Endpoint, mutating_configuration, validating_configuration},
    },
};

use super::args::program_name;

/// Writes the declarations of an operator as JSON.
pub(super) fn write_inventory(manager: &Manager, out: &mut impl Write) -> Result<()> {
    let text = serde_json::to_string(&inventory(manager))?;
    match writeln!(out, "{text}") {
        // The reader of a pipe has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Returns the declarations of an operator.
pub(super) fn inventory(manager: &Manager) -> Inventory {
    Inventory {
        format: Inventory::FORMAT,
        name: program_name(),
        crds: manager.crds().to_vec(),
        samples: manager.samples().to_vec(),
        controllers: manager.controllers().into_iter().map(controller).collect(),
        rights: rights(&manager.own_permissions()),
        election: manager.election().map(|election| ElectionDeclaration {
            lease: election.lease,
            rights: rights(&election.permissions),
        }),
        metrics: manager.served_metrics().map(|metrics| MetricsDeclaration {
            port: metrics.port,
            secure: metrics.secure,
            rights: rights(&metrics.permissions),
        }),
        health_port: manager.health_port(),
        webhooks: webhooks(manager.webhook_servers()),
    }
}

fn controller(declared: manager::ControllerDeclaration) -> ControllerDeclaration {
    let watches = declared.watches.into_iter().map(|resource| WatchDeclaration {
        group: resource.group,
        version: resource.version,
        kind: resource.kind,
        plural: resource.plural,
    });
    ControllerDeclaration { name: declared.name, watches: watches.collect() }
}

fn rights(permissions: &Permissions) -> Rights {
    Rights {
        cluster: permissions.cluster_role(),
        operator: permissions.operator_role(),
        namespaces: permissions.roles(),
    }
}

/// Returns the webhooks of all servers. The port and the certificates are the first server's.
fn webhooks(servers: &[WebhookServerDeclaration]) -> Option<WebhooksDeclaration> {
    let first = servers.first()?;
    let (certificates, service) = match &first.certificates {
        CertificateSource::Files(_) => (CertificateOrigin::Files, None),
        CertificateSource::SelfIssued(issued) => (CertificateOrigin::SelfIssued, service(issued.location())),
    };
    let admissions: Vec<_> = servers.iter().flat_map(|server| server.admissions.clone()).collect();
    let endpoint = Endpoint::service("system", "webhook-service");
    let mutating = mutating_configuration("mutating", &admissions, &endpoint);
    let validating = validating_configuration("validating", &admissions, &endpoint);
    Some(WebhooksDeclaration {
        port: first.port,
        certificates,
        service,
        mutating: mutating.and_then(|configuration| configuration.webhooks).unwrap_or_default(),
        validating: validating.and_then(|configuration| configuration.webhooks).unwrap_or_default(),
        conversions: servers.iter().flat_map(|server| &server.conversions).map(conversion).collect(),
    })
}

fn service(location: &ServedAt) -> Option<ServiceDeclaration> {
    match location {
        ServedAt::Service { namespace, name } => {
            Some(ServiceDeclaration { namespace: namespace.clone(), name: name.clone() })
        }
        ServedAt::Url { .. } => None,
    }
}

fn conversion(declared: &webhook::ConversionDeclaration) -> ConversionDeclaration {
    ConversionDeclaration {
        group: declared.group.clone(),
        kind: declared.kind.clone(),
        plural: declared.plural.clone(),
        versions: declared.versions.clone(),
        hub: declared.hub.clone(),
        path: declared.path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    use windlass_runtime::{
        Action, Context, Controller, ObjectKey,
        leader_election::LeaderElection,
        permission::{Permission, Verb},
        webhook::{AdmissionContext, SelfIssued, WebhookServer, Webhooks},
    };

    use super::{Inventory, Manager, Result, Rights, write_inventory};

    async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> {
        Ok(Action::done())
    }

    async fn default(config: ConfigMap, _: AdmissionContext) -> Result<ConfigMap, Infallible> {
        Ok(config)
    }

    fn printed(manager: &Manager) -> Inventory {
        let mut out = Vec::new();
        write_inventory(manager, &mut out).expect("written");
        Inventory::parse(std::str::from_utf8(&out).expect("text")).expect("an inventory")
    }

    fn manager() -> Manager {
        let source = windlass_runtime::client::ConfigSource {
            kubeconfig: Some("/nonexistent".into()),
            ..windlass_runtime::client::ConfigSource::default()
        };
        Manager::from_config(source)
    }

    fn resources(rights: &Rights) -> Vec<String> {
        let rules = rights.cluster.iter().chain(&rights.operator);
        rules.flat_map(|rule| rule.resources.clone().unwrap_or_default()).collect()
    }

    #[test]
    fn the_rights_of_leader_election_and_metrics_are_apart() {
        let controller = Controller::of::<ConfigMap>(reconcile).owns::<Pod>();
        let bare = printed(&manager().controller(controller));
        assert_eq!(resources(&bare.rights), ["configmaps", "pods", "events"]);
        assert_eq!((bare.election, bare.metrics, bare.webhooks), (None, None, None));

        let controller = Controller::of::<ConfigMap>(reconcile).owns::<Pod>();
        let metrics = windlass_runtime::manager::SecureMetrics::new(([0, 0, 0, 0], 8443).into());
        let full = manager()
            .controller(controller)
            .leader_election(LeaderElection::new("web"))
            .secure_metrics(metrics)
            .needs(Permission::to::<Secret>([Verb::Get]));
        let full = printed(&full);
        assert_eq!(resources(&full.rights), ["configmaps", "pods", "events", "secrets"]);
        let election = full.election.expect("a leader is elected");
        assert_eq!((election.lease.as_str(), election.rights.operator.len()), ("web", 2));
        let metrics = full.metrics.expect("metrics are served");
        assert_eq!((metrics.port, metrics.secure), (8443, true));
        assert_eq!(resources(&metrics.rights), ["tokenreviews", "subjectaccessreviews"]);
        assert_eq!(full.controllers[0].watches[1].plural, "pods");
    }

    #[test]
    fn webhooks_are_listed_with_their_paths_and_the_service_that_is_certified() {
        let webhooks = Webhooks::new().defaulter::<ConfigMap>(default);
        let server = WebhookServer::new(webhooks).self_issued(SelfIssued::for_service("ops", "hooks"));
        let webhooks = printed(&manager().webhooks(server)).webhooks.expect("webhooks");
        assert_eq!((webhooks.port, webhooks.validating.len()), (9443, 0));
        let path =
            webhooks.mutating[0].client_config.service.as_ref().and_then(|service| service.path.clone());
        assert_eq!(path.as_deref(), Some("/mutate--v1-configmap"));
        assert_eq!(webhooks.service.map(|service| service.name).as_deref(), Some("hooks"));
    }
}
