//! The namespaces of a new cluster, the service of the API server, and the priority classes.

use serde_json::{Value, json};

use super::{DAY, MICRO_TIME, TIME, UID};
use crate::ip_addresses;
use windlass_kinds::ServiceClusterIpRange;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "For pods that the cluster cannot do without, on whatever node.",
    ),
    ("system-node-critical", 2_000_001_000, "For pods that their node cannot do without."),
];

/// The port in the objects of a server that does not listen yet.
const SECURE_PORT: u16 = 6443;
/// The lease that identifies the servers of a cluster to each other.
pub(super) const LEASE: &str = "apiserver-windlass";
/// The config map with the trusted authorities, for other servers.
pub(super) const AUTHENTICATION: &str = "extension-apiserver-authentication";

/// Returns the objects, with the group and resource of each object.
pub(super) fn objects(range: ServiceClusterIpRange) -> Vec<(&'static str, &'static str, Value)> {
    let address = range.first().to_string();
    let mut objects: Vec<_> =
        NAMESPACES.into_iter().map(|name| ("", "namespaces", namespace(name))).collect();
    objects.extend(
        PRIORITY_CLASSES
            .into_iter()
            .map(|class| ("scheduling.k8s.io", "priorityclasses", priority_class(class))),
    );
    objects.push(("", "services", kubernetes_service(&address)));
    objects.push(("networking.k8s.io", "servicecidrs", service_range(range)));
    objects.push((
        "networking.k8s.io",
        "ipaddresses",
        ip_addresses::object(&address, "default", "kubernetes"),
    ));
    objects.push(("", "endpoints", endpoints()));
    objects.push(("discovery.k8s.io", "endpointslices", endpoint_slice()));
    objects.push(("coordination.k8s.io", "leases", lease()));
    objects.push(("", "configmaps", config_map(AUTHENTICATION, json!({}))));
    let since = json!({"since": DAY});
    objects.push((
        "",
        "configmaps",
        config_map("kube-apiserver-legacy-service-account-token-tracking", since),
    ));
    objects
}

fn namespace(name: &str) -> Value {
    json!({
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

fn priority_class((name, value, description): (&str, i64, &str)) -> Value {
    json!({
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name, "generation": 1},
        "value": value,
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    })
}

/// Returns the service of the API server in the cluster. No traffic is routed to the service.
fn kubernetes_service(address: &str) -> Value {
    json!({
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": SECURE_PORT}],
        },
        "status": {"loadBalancer": {}},
    })
}

fn service_range(range: ServiceClusterIpRange) -> Value {
    json!({
        "kind": "ServiceCIDR",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [range.to_string()]},
        "status": {"conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": TIME,
            "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
        }]},
    })
}

/// Returns the addresses of the service `kubernetes`, in the old form.
fn endpoints() -> Value {
    json!({
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{
            "addresses": [{"ip": "127.0.0.1"}],
            "ports": [{"name": "https", "port": SECURE_PORT, "protocol": "TCP"}],
        }],
    })
}

fn endpoint_slice() -> Value {
    json!({
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "generation": 1,
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": SECURE_PORT, "protocol": "TCP"}],
    })
}

fn lease() -> Value {
    json!({
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {
            "name": LEASE,
            "namespace": "kube-system",
            "labels": {
                "apiserver.kubernetes.io/identity": "kube-apiserver",
                "kubernetes.io/hostname": "localhost",
            },
        },
        "spec": {
            "holderIdentity": format!("{LEASE}_{UID}"),
            "leaseDurationSeconds": 3_600,
            "renewTime": MICRO_TIME,
        },
    })
}

fn config_map(name: &str, data: Value) -> Value {
    let mut map = json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "kube-system"},
    });
    if data.as_object().is_some_and(|data| !data.is_empty()) {
        map["data"] = data;
    }
    map
}
