//! The namespaces of a new cluster, the service of its API server, and its priority classes.

use serde_json::{Value, json};

use super::TIME;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "For pods that the cluster cannot do without, on whatever node.",
    ),
    ("system-node-critical", 2_000_001_000, "For pods that their node cannot do without."),
];

/// The cluster address of the service `kubernetes`.
const ADDRESS: &str = "10.0.0.1";
/// The addresses of services.
const SERVICE_RANGE: &str = "10.0.0.0/24";
/// The port and the address of a server that does not listen.
const SECURE_PORT: u16 = 6443;

/// Returns the objects, each with its group and resource.
pub(super) fn objects() -> Vec<(&'static str, &'static str, Value)> {
    let mut objects: Vec<_> =
        NAMESPACES.into_iter().map(|name| ("", "namespaces", namespace(name))).collect();
    objects.extend(
        PRIORITY_CLASSES
            .into_iter()
            .map(|class| ("scheduling.k8s.io", "priorityclasses", priority_class(class))),
    );
    objects.push(("", "services", kubernetes_service()));
    objects.push(("networking.k8s.io", "servicecidrs", service_range()));
    objects.push(("networking.k8s.io", "ipaddresses", service_address()));
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

/// The service of the API server in the cluster. No traffic is routed to it.
fn kubernetes_service() -> Value {
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
            "clusterIP": ADDRESS,
            "clusterIPs": [ADDRESS],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": SECURE_PORT}],
        },
        "status": {"loadBalancer": {}},
    })
}

fn service_range() -> Value {
    json!({
        "kind": "ServiceCIDR",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [SERVICE_RANGE]},
        "status": {"conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": TIME,
            "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
        }]},
    })
}

fn service_address() -> Value {
    json!({
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": ADDRESS,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}},
    })
}
