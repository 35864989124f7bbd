//! The cluster-scoped kinds, as far as known without a server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{Permission, Scope, Target, Verb};

/// The cluster-scoped resources of Kubernetes 1.36, by group.
const BUILT_IN: [(&str, &[&str]); 12] = [
    ("", &["componentstatuses", "namespaces", "nodes", "persistentvolumes"]),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("certificates.k8s.io", &["certificatesigningrequests", "clustertrustbundles"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("networking.k8s.io", &["ingressclasses", "ipaddresses", "servicecidrs"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles"]),
    ("resource.k8s.io", &["deviceclasses", "devicetaintrules", "resourceslices"]),
    ("scheduling.k8s.io", &["priorityclasses"]),
    (
        "storage.k8s.io",
        &["csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"],
    ),
];

impl Permission {
    /// Makes a permission on a cluster-scoped kind of Kubernetes or of these CRDs hold in the cluster,
    /// because a Role in a namespace cannot grant the permission.
    pub(crate) fn with_scope_of_kind(mut self, crds: &[CustomResourceDefinition]) -> Self {
        let is_cluster_scoped = match &self.target {
            Target::Resource { group, resource, .. } => {
                let built_in = BUILT_IN.iter().find(|(known, _)| known == group);
                built_in.is_some_and(|(_, resources)| resources.contains(&resource.as_str()))
                    || crds.iter().any(|crd| {
                        let spec = &crd.spec;
                        spec.scope == "Cluster" && spec.group == *group && spec.names.plural == *resource
                    })
            }
            Target::Url(_) => false,
        };
        if self.scope == Scope::Manager && is_cluster_scoped && !self.is_about_own_namespace() {
            self.scope = Scope::Cluster;
        }
        self
    }

    /// Returns whether the permission is on Namespace objects by name: a Role in a namespace can grant verbs
    /// on the namespace itself.
    fn is_about_own_namespace(&self) -> bool {
        let of_all = [Verb::List, Verb::Watch, Verb::Create, Verb::DeleteCollection];
        matches!(&self.target, Target::Resource { group, resource, .. } if group.is_empty() && resource == "namespaces")
            && !of_all.iter().any(|verb| self.verbs.contains(verb))
    }
}
