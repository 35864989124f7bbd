//! The built-in resources that the server and other kinds refer to.

use std::sync::LazyLock;

use windlass_store::ResourceId;

/// ClusterRoles.
pub static CLUSTER_ROLES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("rbac.authorization.k8s.io", "clusterroles"));
/// CustomResourceDefinitions.
pub static DEFINITIONS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions"));
/// Endpoints.
pub static ENDPOINTS: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "endpoints"));
/// EndpointSlices.
pub static ENDPOINT_SLICES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("discovery.k8s.io", "endpointslices"));
/// Events of both groups.
pub static EVENTS: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "events"));
/// LimitRanges.
pub static LIMIT_RANGES: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "limitranges"));
/// Namespaces.
pub static NAMESPACES: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "namespaces"));
/// Nodes.
pub static NODES: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "nodes"));
/// PersistentVolumeClaims.
pub static PERSISTENT_VOLUME_CLAIMS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("", "persistentvolumeclaims"));
/// Pods.
pub static PODS: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "pods"));
/// PodDisruptionBudgets.
pub static POD_DISRUPTION_BUDGETS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("policy", "poddisruptionbudgets"));
/// ResourceQuotas.
pub static RESOURCE_QUOTAS: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "resourcequotas"));
/// RuntimeClasses.
pub static RUNTIME_CLASSES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("node.k8s.io", "runtimeclasses"));
/// Secrets.
pub static SECRETS: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "secrets"));
/// Services.
pub static SERVICES: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "services"));
/// ServiceAccounts.
pub static SERVICE_ACCOUNTS: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "serviceaccounts"));
/// StorageClasses.
pub static STORAGE_CLASSES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("storage.k8s.io", "storageclasses"));

/// FlowSchemas.
pub static FLOW_SCHEMAS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("flowcontrol.apiserver.k8s.io", "flowschemas"));
/// IPAddresses.
pub static IP_ADDRESSES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("networking.k8s.io", "ipaddresses"));
/// MutatingAdmissionPolicyBindings.
pub static MUTATING_BINDINGS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"));
/// MutatingAdmissionPolicies.
pub static MUTATING_POLICIES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("admissionregistration.k8s.io", "mutatingadmissionpolicies"));
/// MutatingWebhookConfigurations.
pub static MUTATING_WEBHOOKS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("admissionregistration.k8s.io", "mutatingwebhookconfigurations"));
/// PriorityLevelConfigurations.
pub static PRIORITY_LEVELS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"));
/// ValidatingAdmissionPolicyBindings.
pub static VALIDATING_BINDINGS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("admissionregistration.k8s.io", "validatingadmissionpolicybindings"));
/// ValidatingAdmissionPolicies.
pub static VALIDATING_POLICIES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("admissionregistration.k8s.io", "validatingadmissionpolicies"));
/// ValidatingWebhookConfigurations.
pub static VALIDATING_WEBHOOKS: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("admissionregistration.k8s.io", "validatingwebhookconfigurations"));

/// APIServices.
pub static API_SERVICES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("apiregistration.k8s.io", "apiservices"));

/// Bindings of pods, which are answered and not stored.
pub static BINDINGS: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "bindings"));

/// ComponentStatuses, which are computed and not stored.
pub static COMPONENT_STATUSES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("", "componentstatuses"));
