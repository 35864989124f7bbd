//! The state after the events of pods.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_runtime::ObjectKey;

use crate::scheduler::cluster::PodFacts;
use crate::scheduler::rejection::Check;
use crate::scheduler::state::{Reservation, SharedState};
use crate::scheduler::waiting::{Change, Seen};

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

/// Returns a state where the node `a` is reserved for the pod `p`, and the pod `q` fits on no node.
fn nominated(key: &ObjectKey) -> SharedState {
    let shared = SharedState::default();
    let mut state = shared.lock();
    state.cluster.nominate(key, Some(("a".to_owned(), PodFacts::of(&pod(None, None)))));
    let other = ObjectKey::namespaced("default", "q");
    let checks = BTreeSet::from([Check::Resources]);
    state.waiting.insert(&other, 0, Seen::default(), checks, Instant::now());
    drop(state);
    shared
}

/// Returns whether the pod `q` is in the queue.
fn is_woken(shared: &SharedState) -> bool {
    shared.lock().waiting.take_helped_by(Change::PodGone, Instant::now()).is_empty()
}

#[test]
fn the_end_of_a_nomination_wakes_the_pods_that_find_no_room() {
    let key = ObjectKey::namespaced("default", "p");
    let ends = [
        ("the pod is gone", None, true),
        ("the pod terminates", Some(pod(None, Some("2026-01-01T00:00:00Z"))), true),
        ("the pod is on another node", Some(pod(Some("b"), None)), true),
        ("the pod is on the node", Some(pod(Some("a"), None)), false),
        ("nothing has changed", Some(pod(None, None)), false),
    ];
    for (what, next, frees) in ends {
        let shared = nominated(&key);
        shared.observe_pod(&key, next.as_ref());
        assert_eq!(is_woken(&shared), frees, "{what}");
    }
}
