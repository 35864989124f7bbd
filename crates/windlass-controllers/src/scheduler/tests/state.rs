//! The state after the events of pods.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use windlass_runtime::ObjectKey;

use crate::scheduler::cluster::PodFacts;
use crate::scheduler::state::{Reservation, SharedState};

fn pod(node: Option<&str>, deleted: Option<&str>) -> Pod {
    let metadata = json!({"name": "p", "namespace": "default", "uid": "u", "deletionTimestamp": deleted});
    let spec = json!({"containers": [{"name": "c"}], "nodeName": node.map_or(Value::Null, Value::from)});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

/// Returns a state where the node `a` is chosen and reserved for a pod.
fn reserved(key: &ObjectKey) -> SharedState {
    let shared = SharedState::default();
    let mut state = shared.lock();
    state.cluster.place(key, "a", PodFacts::of(&pod(None, None)));
    state.reserved.insert(key.clone(), Reservation { node: "a".to_owned(), since: Timestamp::UNIX_EPOCH });
    drop(state);
    shared
}

#[test]
fn a_terminating_pod_frees_its_reservation() {
    let key = ObjectKey::namespaced("default", "p");
    let shared = reserved(&key);
    shared.observe_pod(&key, Some(&pod(None, None)));
    assert!(shared.lock().cluster.pod(&key).is_some());
    shared.observe_pod(&key, Some(&pod(None, Some("2026-01-01T00:00:00Z"))));
    let state = shared.lock();
    assert!(state.cluster.pod(&key).is_none() && state.reserved.is_empty());
}

#[test]
fn an_error_of_the_binding_frees_the_node_only_if_the_pod_is_not_bound() {
    let key = ObjectKey::namespaced("default", "p");
    let shared = reserved(&key);
    shared.unplace(&key);
    assert!(shared.lock().cluster.pod(&key).is_none());
    let shared = reserved(&key);
    shared.observe_pod(&key, Some(&pod(Some("a"), None)));
    shared.unplace(&key);
    assert!(shared.lock().cluster.pod(&key).is_some());
}
