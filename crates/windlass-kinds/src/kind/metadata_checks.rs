//! The number of times that kube-apiserver validates the metadata of each kind. The number shows in repeated
//! errors.
//!
//! Each object is validated by the generic registry and, mostly, by the strategy of its kind.

/// The metadata that the strategy of a kind validates, besides the generic registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataChecks {
    /// True if the metadata of a new object are validated. Otherwise they are once the rest is valid, and the
    /// name may be any segment of a path.
    pub on_create: bool,
    /// How often the change of the metadata is validated.
    pub changes: usize,
    /// How often the new metadata of an update are validated as those of a new object.
    pub whole: usize,
    /// How often the change of the metadata is validated in a write of a subresource.
    pub subresources: usize,
    /// True if finalizers without a domain must be those of Kubernetes.
    pub finalizers: bool,
}

const COMMON: MetadataChecks =
    MetadataChecks { on_create: true, changes: 1, whole: 0, subresources: 1, finalizers: true };
const TWICE: MetadataChecks = MetadataChecks { whole: 1, ..COMMON };
const WHOLE: MetadataChecks = MetadataChecks { changes: 0, whole: 1, ..COMMON };
const GENERIC: MetadataChecks = MetadataChecks { on_create: false, changes: 0, subresources: 0, ..COMMON };

impl MetadataChecks {
    /// The checks of custom resources.
    pub const CUSTOM: Self = Self { finalizers: false, ..COMMON };

    /// Returns the checks of a built-in resource.
    pub fn of(group: &str, resource: &str) -> Self {
        match (group, resource) {
            ("", "events") | ("policy", "poddisruptionbudgets") => GENERIC,
            ("apiextensions.k8s.io" | "coordination.k8s.io", _) => Self::CUSTOM,
            ("node.k8s.io", "runtimeclasses") => Self { finalizers: false, ..TWICE },
            ("", "persistentvolumes") => Self { whole: 2, ..WHOLE },
            ("", "limitranges")
            | ("discovery.k8s.io", "endpointslices")
            | ("storage.k8s.io", "csinodes" | "volumeattachments") => WHOLE,
            ("admissionregistration.k8s.io", _) => Self { finalizers: false, ..WHOLE },
            ("flowcontrol.apiserver.k8s.io", _) => Self { subresources: 0, ..WHOLE },
            ("batch", "cronjobs") => Self { subresources: 0, ..COMMON },
            (
                "",
                "configmaps"
                | "endpoints"
                | "namespaces"
                | "nodes"
                | "persistentvolumeclaims"
                | "pods"
                | "secrets"
                | "serviceaccounts",
            )
            | ("apps", "controllerrevisions")
            | ("batch", "jobs")
            | ("certificates.k8s.io", "certificatesigningrequests")
            | ("networking.k8s.io", "ingresses" | "ingressclasses" | "ipaddresses")
            | ("rbac.authorization.k8s.io", _)
            | ("resource.k8s.io", "deviceclasses" | "resourceclaims" | "resourceclaimtemplates")
            | ("storage.k8s.io", "csistoragecapacities" | "storageclasses" | "volumeattributesclasses") => {
                TWICE
            }
            _ => COMMON,
        }
    }
}
