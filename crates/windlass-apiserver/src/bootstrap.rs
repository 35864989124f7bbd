//! The objects that a server makes for itself.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::Api;
use crate::store::ResourceId;
use crate::wire::ApiError;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates them in an empty store.
pub(crate) fn create(api: &Arc<Api>) -> Result<(), ApiError> {
    for name in NAMESPACES {
        put(
            api,
            "",
            "namespaces",
            json!({
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            }),
        )?;
    }
    for (name, value, description) in PRIORITY_CLASSES {
        put(
            api,
            "scheduling.k8s.io",
            "priorityclasses",
            json!({
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "metadata": {"name": name, "generation": 1},
                "value": value,
                "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        )?;
    }
    put(api, "", "services", kubernetes_service())
}

const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "For pods that the cluster cannot do without, on whatever node.",
    ),
    ("system-node-critical", 2_000_001_000, "For pods that their node cannot do without."),
];

/// The port that `kubernetes` leads to, until the server listens.
const SECURE_PORT: u16 = 6443;

/// The address of the API server inside of the cluster. Nothing answers there: no traffic is routed by this server.
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
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": SECURE_PORT}],
        },
        "status": {"loadBalancer": {}},
    })
}

fn put(api: &Arc<Api>, group: &str, resource: &str, mut object: Value) -> Result<(), ApiError> {
    crate::meta::set(&mut object, "uid", Some(api.env.uid().into()));
    crate::meta::set(&mut object, "creationTimestamp", Some(api.env.now_rfc3339().into()));
    let name = crate::meta::name(&object);
    let namespace = crate::meta::namespace(&object);
    let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    api.store
        .commit(&ResourceId::new(group, resource), &key, None, Some(object))
        .map_err(|_| ApiError::internal(format!("{resource} {key} is there already")))?;
    Ok(())
}
