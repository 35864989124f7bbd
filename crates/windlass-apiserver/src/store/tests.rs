use serde_json::json;

use super::*;

fn pods() -> ResourceId {
    ResourceId::new("", "pods")
}

fn object(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[test]
fn revisions_are_global_and_stamped() {
    let store = Store::new(0);
    let one = store.commit(&pods(), "a/x", None, Some(object("x"))).unwrap();
    let two = store.commit(&ResourceId::new("", "nodes"), "n", None, Some(object("n"))).unwrap();
    assert_eq!(two.rv, one.rv + 1);
    assert_eq!(two.value["metadata"]["resourceVersion"], json!(two.rv.to_string()));
}

#[test]
fn a_write_that_comes_second_is_refused() {
    let store = Store::new(0);
    let first = store.commit(&pods(), "a/x", None, Some(object("x"))).unwrap();
    assert!(store.commit(&pods(), "a/x", None, Some(object("x"))).is_err());
    store.commit(&pods(), "a/x", Some(first.rv), Some(object("x"))).unwrap();
    assert!(store.commit(&pods(), "a/x", Some(first.rv), Some(object("x"))).is_err());
    assert!(store.commit(&pods(), "a/x", Some(first.rv), None).is_err());
}

#[test]
fn a_namespace_is_a_range_of_keys() {
    let store = Store::new(0);
    for key in ["a/x", "a-b/y", "a/w", "b/z"] {
        store.commit(&pods(), key, None, Some(object(key))).unwrap();
    }
    let view = store.view();
    let keys = |namespace| view.range(&pods(), namespace).map(|(key, _)| key.to_string()).collect::<Vec<_>>();
    assert_eq!(keys(Some("a")), ["a/w", "a/x"]);
    assert_eq!(keys(None), ["a-b/y", "a/w", "a/x", "b/z"]);
}

#[test]
fn the_past_is_the_present_undone() {
    let store = Store::new(0);
    let x = store.commit(&pods(), "a/x", None, Some(object("x"))).unwrap();
    let then = store.view().revision();
    store.commit(&pods(), "a/x", Some(x.rv), None).unwrap();
    store.commit(&pods(), "a/y", None, Some(object("y"))).unwrap();
    let view = store.view_at(&pods(), then).unwrap();
    assert_eq!(view.revision(), then);
    assert!(view.get(&pods(), "a/x").is_some());
    assert!(view.get(&pods(), "a/y").is_none());
    store.log(&pods()).compact(then + 1);
    assert!(store.view_at(&pods(), then).is_none());
}

#[test]
fn a_cursor_that_falls_behind_is_told() {
    let store = Store::new(0);
    store.commit(&pods(), "a/x", None, Some(object("x"))).unwrap();
    let log = store.log(&pods());
    assert!(matches!(log.tail(1, 10), Tail::Events(events) if events.len() == 1));
    log.compact(2);
    assert!(matches!(log.tail(1, 10), Tail::Expired(2)));
    assert!(matches!(log.tail(2, 10), Tail::Events(events) if events.is_empty()));
    store.forget(&pods());
    assert!(matches!(log.tail(2, 10), Tail::Closed));
}

#[test]
fn a_fork_shares_the_past_only() {
    let store = Store::new(0);
    store.commit(&pods(), "a/x", None, Some(object("x"))).unwrap();
    let fork = Store::fork(&store.view(), 0);
    fork.commit(&pods(), "a/y", None, Some(object("y"))).unwrap();
    assert_eq!(fork.view().count(&pods()), 2);
    assert_eq!(store.view().count(&pods()), 1);
    assert!(matches!(fork.log(&pods()).tail(1, 1), Tail::Expired(2)));
}

#[test]
fn a_fork_that_starts_later_does_not_continue_the_history_of_its_snapshot() {
    let store = Store::new(100);
    let x = store.commit(&pods(), "a/x", None, Some(object("x"))).unwrap();
    assert_eq!(x.rv, 101);
    let fork = Store::fork(&store.view(), 500);
    assert!(matches!(fork.log(&pods()).tail(x.rv, 1), Tail::Expired(500)));
    assert_eq!(fork.commit(&pods(), "a/y", None, Some(object("y"))).unwrap().rv, 501);
}

#[test]
fn kind_and_version_come_first_and_the_rest_can_be_split_off() {
    let value = json!({"apiVersion": "v1", "data": {}, "kind": "ConfigMap", "metadata": {"name": "x"}});
    let stored = Stored::new(value, 7);
    assert_eq!(
        stored.json,
        r#"{"kind":"ConfigMap","apiVersion":"v1","data":{},"metadata":{"name":"x","resourceVersion":"7"}}"#
    );
    assert_eq!(stored.tail(), r#""data":{},"metadata":{"name":"x","resourceVersion":"7"}}"#);
}
