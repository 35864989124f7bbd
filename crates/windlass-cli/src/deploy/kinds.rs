//! The kinds of deployed objects, and the resources of the kinds in a cluster.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::Value;

use crate::error::Result;

/// A kind, as `Deployment.v1.apps`; of the core group, as `Service.v1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::struct_field_names, reason = "a group, a version and a kind")]
pub(crate) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// The kinds of `windlass manifests`, in kustomize's order of application. Namespaces and CRDs are missing:
/// no deployment prunes them.
const GENERATED: [(&str, &str, &str); 13] = [
    ("", "v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("", "v1", "Service"),
    ("apps", "v1", "Deployment"),
    ("cert-manager.io", "v1", "Certificate"),
    ("cert-manager.io", "v1", "Issuer"),
    ("monitoring.coreos.com", "v1", "ServiceMonitor"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
];

impl Kind {
    fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// Returns the kind of an object.
    pub(super) fn of(object: &Value) -> Self {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        Self::new(group, version, object["kind"].as_str().unwrap_or_default())
    }

    /// Reads the text of a kind.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let (kind, version) = (parts.next()?, parts.next()?);
        Some(Self::new(parts.next().unwrap_or_default(), version, kind))
    }

    /// Returns the kinds of `windlass manifests`.
    pub(super) fn generated() -> Vec<Self> {
        GENERATED.iter().map(|(group, version, kind)| Self::new(group, version, kind)).collect()
    }

    /// Returns whether objects of the kind may be pruned.
    pub(super) fn is_prunable(&self) -> bool {
        !matches!(self.kind.as_str(), "Namespace" | "CustomResourceDefinition")
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.kind, self.version)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Returns the kinds of objects as one text, sorted.
pub(super) fn listed(objects: &[Value]) -> String {
    let kinds: BTreeSet<String> =
        objects.iter().map(Kind::of).filter(Kind::is_prunable).map(|kind| kind.to_string()).collect();
    kinds.into_iter().collect::<Vec<_>>().join(",")
}

/// The resource of a kind.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) api: ApiResource,
    pub(super) is_namespaced: bool,
}

impl Resource {
    /// Returns the objects of a namespace, or of the cluster.
    pub(super) fn objects(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.api),
            None => Api::all_with(client.clone(), &self.api),
        }
    }
}

/// The resources of a cluster, each asked for once.
pub(super) struct Resources {
    client: Client,
    known: BTreeMap<Kind, Option<Resource>>,
}

impl Resources {
    pub(super) fn new(client: &Client) -> Self {
        Self { client: client.clone(), known: BTreeMap::new() }
    }

    /// Returns the resource of a kind, or `None` if the cluster does not serve the kind.
    pub(super) async fn get(&mut self, kind: &Kind) -> Result<Option<Resource>> {
        if let Some(known) = self.known.get(kind) {
            return Ok(known.clone());
        }
        let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        let found = match discovery::pinned_kind(&self.client, &gvk).await {
            Ok((api, capabilities)) => {
                Some(Resource { api, is_namespaced: capabilities.scope == Scope::Namespaced })
            }
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(kube::Error::Discovery(_)) => None,
            Err(error) => return Err(format!("looking up the kind {kind}: {error}").into()),
        };
        self.known.insert(kind.clone(), found.clone());
        Ok(found)
    }
}

/// Returns the name of an object for a person, as `deployment.apps/web`.
pub(super) fn shown(kind: &Kind, name: &str) -> String {
    let lower = kind.kind.to_lowercase();
    if kind.group.is_empty() { format!("{lower}/{name}") } else { format!("{lower}.{}/{name}", kind.group) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_is_read_as_it_was_written() {
        for text in ["Service.v1", "Deployment.v1.apps", "Role.v1.rbac.authorization.k8s.io"] {
            assert_eq!(Kind::parse(text).expect("a kind").to_string(), text);
        }
        assert_eq!(Kind::parse("Service"), None);
    }

    #[test]
    fn namespaces_and_definitions_are_never_listed_for_pruning() {
        let object = |version: &str, kind: &str| json!({ "apiVersion": version, "kind": kind });
        let objects = [
            object("v1", "Namespace"),
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            object("v1", "Service"),
            object("apps/v1", "Deployment"),
            object("v1", "Service"),
        ];
        assert_eq!(listed(&objects), "Deployment.v1.apps,Service.v1");
    }
}
