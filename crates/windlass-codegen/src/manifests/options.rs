//! The options of manifests that are not in the inventory.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::error::ManifestError;
use crate::Inventory;

/// The options of manifests that are not in the inventory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The name of the project: the beginning of all names.
    pub project: String,
    /// The namespace of the operator. Default: `<project>-system`.
    pub namespace: String,
    /// The image of the operator. Default: `controller:latest`, as kubebuilder's.
    pub image: String,
    /// The name of the operator's role, behind the name of the project. Default: `manager-role`.
    pub role_name: String,
    /// True if the operator watches only the operator's own namespace.
    pub namespaced: bool,
    /// The optional components of `config/default`. Default: metrics.
    pub components: BTreeSet<Component>,
    /// True if [`components`](Self::components) is all that `config/default` lists, because the user keeps
    /// that file by hand. Otherwise the components that the operator needs are added.
    pub exactly_these_components: bool,
    /// The objects of files that the user keeps by hand, by path. The objects replace generated objects in
    /// `install.yaml`.
    pub own_files: BTreeMap<String, Vec<Value>>,
    /// The longest description in a schema, in bytes; 0 removes all descriptions. Default: no limit.
    pub max_description: Option<usize>,
}

/// A kustomize Component: a folder below `config/` that `config/default` lists if the operator has the feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// The metrics endpoint and the service of the endpoint.
    Metrics,
    /// The webhook server, the service of the server, and the configurations.
    Webhook,
    /// The certificate of the webhook server, by cert-manager.
    CertManager,
    /// A ServiceMonitor of the Prometheus operator.
    Prometheus,
    /// Network policies for the metrics endpoint and the webhook server.
    NetworkPolicy,
}

impl Component {
    /// All components, in the order of `config/default`.
    pub const ALL: [Self; 5] =
        [Self::Metrics, Self::Webhook, Self::CertManager, Self::Prometheus, Self::NetworkPolicy];

    /// Returns the name of the component's folder below `config/`.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Webhook => "webhook",
            Self::CertManager => "certmanager",
            Self::Prometheus => "prometheus",
            Self::NetworkPolicy => "network-policy",
        }
    }
}

impl Options {
    /// Returns the default options of a project.
    pub fn new(project: impl Into<String>) -> Self {
        let project = project.into();
        Self {
            namespace: format!("{project}-system"),
            project,
            image: "controller:latest".to_owned(),
            role_name: "manager-role".to_owned(),
            namespaced: false,
            components: BTreeSet::from([Component::Metrics]),
            exactly_these_components: false,
            own_files: BTreeMap::new(),
            max_description: None,
        }
    }

    /// Returns the arguments of the operator in the Deployment. The command `manifests` is called with the
    /// same arguments, because arguments can add to the inventory.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "--leader-elect".to_owned(),
            format!("--leader-election-id={}", self.project),
            "--health-probe-bind-address=:8081".to_owned(),
        ];
        if self.namespaced {
            arguments.push(format!("--namespace={}", self.namespace));
        }
        arguments
    }

    /// Works like [`arguments`](Self::arguments), with the argument of the metrics endpoint.
    pub fn inventory_arguments(&self) -> Vec<String> {
        let mut arguments = self.arguments();
        arguments.push(METRICS_ARGUMENT.to_owned());
        arguments
    }

    pub(super) fn names(&self, inventory: &Inventory) -> Result<Names, ManifestError> {
        let service = inventory.webhooks.as_ref().and_then(|webhooks| webhooks.service.as_ref());
        if let Some(service) = service.filter(|service| service.namespace != self.namespace) {
            return Err(ManifestError::Service {
                service: format!("{}/{}", service.namespace, service.name),
                namespace: self.namespace.clone(),
            });
        }
        Ok(Names {
            project: self.project.clone(),
            namespace: self.namespace.clone(),
            webhook_service: service
                .map_or_else(|| format!("{}-webhook-service", self.project), |service| service.name.clone()),
        })
    }
}

/// The argument that turns on the metrics endpoint.
pub(crate) const METRICS_ARGUMENT: &str = "--metrics-bind-address=:8443";

/// The names of objects in references.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) project: String,
    pub(super) namespace: String,
    pub(super) webhook_service: String,
}

impl Names {
    /// Returns a name that begins with that of the project.
    pub(super) fn of(&self, name: &str) -> String {
        format!("{}-{name}", self.project)
    }

    /// Returns the labels of all objects.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let labels =
            [("app.kubernetes.io/name", self.project.as_str()), ("app.kubernetes.io/managed-by", "windlass")];
        labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    /// Returns the labels that select the pods of the operator.
    pub(super) fn pod_labels(&self) -> BTreeMap<String, String> {
        let labels =
            [("control-plane", "controller-manager"), ("app.kubernetes.io/name", self.project.as_str())];
        labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }
}
