//! The validation of metadata that kube-apiserver does for each kind.
//!
//! Each object is validated by the generic registry and, mostly, by the strategy of its kind. Equal errors of both
//! are reported once, except for custom resources, their definitions and APIServices.

/// The metadata that the strategy of a kind validates, besides the generic registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each check is independent of the others")]
pub struct MetadataChecks {
    /// True if the metadata of a new object are validated. Otherwise they are once the rest is valid, and the
    /// name may be any segment of a path.
    pub on_create: bool,
    /// True if the change of the metadata is validated.
    pub changes: bool,
    /// True if the new metadata of an update are validated as those of a new object.
    pub whole: bool,
    /// True if the change of the metadata is validated in a write of a subresource.
    pub subresources: bool,
    /// True if finalizers without a domain must be those of Kubernetes.
    pub finalizers: bool,
    /// True if an error that is found twice is reported twice.
    pub repeated: bool,
}

const COMMON: MetadataChecks = MetadataChecks {
    on_create: true,
    changes: true,
    whole: false,
    subresources: true,
    finalizers: true,
    repeated: false,
};
const BOTH: MetadataChecks = MetadataChecks { whole: true, ..COMMON };
const WHOLE: MetadataChecks = MetadataChecks { changes: false, whole: true, ..COMMON };
const GENERIC: MetadataChecks =
    MetadataChecks { on_create: false, changes: false, subresources: false, ..COMMON };

impl MetadataChecks {
    /// The checks of custom resources.
    pub const CUSTOM: Self = Self { finalizers: false, repeated: true, ..COMMON };

    /// Returns the checks of a built-in resource.
    pub fn of(group: &str, resource: &str) -> Self {
        match (group, resource) {
            ("", "events") | ("policy", "poddisruptionbudgets") => GENERIC,
            ("apiextensions.k8s.io", _) => Self::CUSTOM,
            ("apiregistration.k8s.io", _) => Self { whole: true, ..Self::CUSTOM },
            ("coordination.k8s.io", _) => Self { finalizers: false, ..COMMON },
            ("node.k8s.io", "runtimeclasses") => Self { finalizers: false, ..BOTH },
            ("", "limitranges" | "persistentvolumes")
            | ("discovery.k8s.io", "endpointslices")
            | ("storage.k8s.io", "csinodes" | "volumeattachments") => WHOLE,
            ("admissionregistration.k8s.io", _) => Self { finalizers: false, ..WHOLE },
            ("flowcontrol.apiserver.k8s.io", _) => Self { subresources: false, ..WHOLE },
            ("batch", "cronjobs") => Self { subresources: false, ..COMMON },
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
                BOTH
            }
            _ => COMMON,
        }
    }
}
