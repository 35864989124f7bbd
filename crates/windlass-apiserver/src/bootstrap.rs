//! The objects that a server creates for itself.

use serde_json::{Value, json};

use crate::state::State;
use crate::store::Write;
use crate::wire::ApiError;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates the objects in an empty store.
pub(crate) fn create(state: &State) -> Result<(), ApiError> {
    for name in NAMESPACES {
        put(
            state,
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
            state,
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
    put(state, "", "services", kubernetes_service())
}

const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "For pods that the cluster cannot do without, on whatever node.",
    ),
    ("system-node-critical", 2_000_001_000, "For pods that their node cannot do without."),
];

/// The target port of the service `kubernetes`, whatever port the server listens on.
const SECURE_PORT: u16 = 6443;

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

fn put(state: &State, group: &str, resource: &str, mut object: Value) -> Result<(), ApiError> {
    crate::meta::set(&mut object, "uid", Some(state.env.uid().into()));
    crate::meta::set(&mut object, "creationTimestamp", Some(state.env.now_rfc3339().into()));
    let unknown = || ApiError::internal(format!("{group} has no {resource}"));
    let resource = state.builtin.resource(group, "v1", resource).ok_or_else(unknown)?;
    let key = resource.key(crate::meta::namespace(&object), crate::meta::name(&object));
    let now = state.env.now();
    let draft = Some(resource.draft(&object, state.store.labels(), now));
    let write = Write { id: &resource.storage, key: &key, expected: None, draft, now };
    state
        .store
        .commit_now(write, |_| Ok(()))
        .map_err(|_| ApiError::internal(format!("{} {key} is there already", resource.plural)))?;
    Ok(())
}
