use bytes::Bytes;
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn pods() -> ResourceId {
    ResourceId::new("", "pods")
}

fn store() -> Store {
    Store::new(0, Retention::default())
}

fn object(name: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "uid": "u"}})
}

fn layout() -> Layout {
    Layout { api_version: "v1".into(), schema: 0 }
}

fn draft(store: &Store, object: &Value, attrs: ObjectAttrs) -> Draft {
    Draft::new(object, layout(), attrs, store.labels())
}

fn commit_at(
    store: &Store,
    key: &str,
    expected: Option<u64>,
    object: Option<&Value>,
    now: Timestamp,
) -> Result<Arc<Stored>, CommitError> {
    let draft = object.map(|object| draft(store, object, ObjectAttrs::default()));
    store.commit_now(Write { id: &pods(), key, expected, draft, now }, |_| Ok(()))
}

fn commit(
    store: &Store,
    key: &str,
    expected: Option<u64>,
    object: Option<&Value>,
) -> Result<Arc<Stored>, CommitError> {
    commit_at(store, key, expected, object, Timestamp::UNIX_EPOCH)
}

#[test]
fn revisions_are_global_and_stamped() {
    for start in [0, 999_999_999_999_999, 1_700_000_000_000_000] {
        let store = Store::new(start, Retention::default());
        let one = commit(&store, "a/x", None, Some(&object("x"))).unwrap();
        let two = commit(&store, "a/y", None, Some(&object("y"))).unwrap();
        assert_eq!(two.rv, one.rv + 1);
        assert_eq!(two.value()["metadata"]["resourceVersion"], json!(two.rv.to_string()));
        let gone = commit(&store, "a/y", Some(two.rv), None).unwrap();
        assert_eq!(gone.value()["metadata"]["resourceVersion"], json!((two.rv + 1).to_string()));
    }
}

#[test]
fn bytes_begin_with_kind_and_version_and_their_parts_are_found() {
    let store = store();
    let mut object = object("x");
    object["metadata"]["zone"] = json!("z");
    object["spec"] = json!({"a": [1, {"b": null}]});
    let stored = commit(&store, "a/x", None, Some(&object)).unwrap();
    assert!(
        stored
            .json()
            .starts_with(br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","resourceVersion":""#)
    );
    let metadata: Value = serde_json::from_slice(stored.metadata()).unwrap();
    assert_eq!(metadata, stored.value()["metadata"]);
    let other = Layout { api_version: "other/v2".into(), schema: 0 };
    let shown = stored.relabelled(&other, "Pod");
    object["apiVersion"] = json!("other/v2");
    object["metadata"]["resourceVersion"] = json!(stored.rv.to_string());
    assert_eq!(shown.value(), object);
    assert_eq!(shown.at(7).value()["metadata"]["resourceVersion"], json!("7"));
    assert_eq!(shown.metadata(), stored.metadata());
}

#[test]
fn a_write_that_comes_second_is_refused() {
    let store = store();
    let first = commit(&store, "a/x", None, Some(&object("x"))).unwrap();
    assert!(commit(&store, "a/x", None, Some(&object("x"))).is_err());
    commit(&store, "a/x", Some(first.rv), Some(&object("x"))).unwrap();
    assert!(commit(&store, "a/x", Some(first.rv), Some(&object("x"))).is_err());
    assert!(commit(&store, "a/x", Some(first.rv), None).is_err());
}

#[test]
fn a_guard_sees_the_state_that_is_changed() {
    let store = store();
    commit(&store, "a/x", None, Some(&object("x"))).unwrap();
    let write = Write { id: &pods(), key: "a/y", expected: None, draft: None, now: Timestamp::UNIX_EPOCH };
    let refused = store.commit_now(write, |view| {
        assert!(view.get(&pods(), "a/x").is_some());
        Err(ApiError::internal("no"))
    });
    assert!(matches!(refused, Err(CommitError::Refused(_))));
}

#[test]
fn a_claim_has_one_holder_until_it_is_given_back() {
    let store = store();
    let claims = |claim: &str| ObjectAttrs { claims: [claim.into()].into(), ..ObjectAttrs::default() };
    let write = |key: &'static str, expected, claim: &str| {
        let draft = Some(draft(&store, &object(key), claims(claim)));
        store.commit_now(Write { id: &pods(), key, expected, draft, now: Timestamp::UNIX_EPOCH }, |_| Ok(()))
    };
    let x = write("a/x", None, "ip/1").unwrap();
    assert!(matches!(write("a/y", None, "ip/1"), Err(CommitError::ClaimTaken)));
    assert!(store.view().is_claimed(&pods(), "ip/1", "a/y"));
    let x = write("a/x", Some(x.rv), "ip/1").unwrap();
    let x = write("a/x", Some(x.rv), "ip/2").unwrap();
    write("a/y", None, "ip/1").unwrap();
    commit(&store, "a/x", Some(x.rv), None).unwrap();
    write("a/z", None, "ip/2").unwrap();
}

#[test]
fn a_namespace_is_a_range_of_keys() {
    let store = store();
    for key in ["a/x", "a-b/y", "a/w", "b/z"] {
        commit(&store, key, None, Some(&object(key))).unwrap();
    }
    let view = store.view();
    let keys = |namespace| view.range(&pods(), namespace).map(|(key, _)| key.to_string()).collect::<Vec<_>>();
    assert_eq!(keys(Some("a")), ["a/w", "a/x"]);
    assert_eq!(keys(None), ["a-b/y", "a/w", "a/x", "b/z"]);
}

#[test]
fn the_past_is_the_present_undone() {
    let store = store();
    let x = commit(&store, "a/x", None, Some(&object("x"))).unwrap();
    let then = store.view().revision();
    let x = commit(&store, "a/x", Some(x.rv), Some(&object("x2"))).unwrap();
    commit(&store, "a/x", Some(x.rv), None).unwrap();
    commit(&store, "a/y", None, Some(&object("y"))).unwrap();
    let view = store.view_at(&pods(), then).unwrap();
    assert_eq!(view.revision(), then);
    assert_eq!(view.get(&pods(), "a/x").unwrap().value()["metadata"]["name"], "x");
    assert!(view.get(&pods(), "a/y").is_none());
    store.compact();
    assert!(store.view_at(&pods(), then).is_none());
}

#[test]
fn a_cursor_that_falls_behind_is_told() {
    let store = store();
    let start = store.view().revision();
    commit(&store, "a/x", None, Some(&object("x"))).unwrap();
    let log = store.log(&pods());
    assert!(matches!(log.tail(start, 10), Tail::Events(events) if events.len() == 1));
    store.compact();
    assert!(matches!(log.tail(start, 10), Tail::Expired(_)));
    let now = store.view().revision();
    assert!(matches!(log.tail(now, 10), Tail::Events(events) if events.is_empty()));
    store.forget(&pods());
    assert!(matches!(log.tail(now, 10), Tail::Closed));
    // A later resource of the same name does not have the events of this resource.
    assert!(matches!(store.log(&pods()).tail(now, 10), Tail::Expired(_)));
}

#[test]
fn the_starts_of_forgotten_resources_are_few_and_still_hold() {
    let store = store();
    let first = ResourceId::new("g", "first");
    let start = store.view().revision();
    store.forget(&first);
    let forgotten = store.view().revision();
    assert!(matches!(store.log(&first).tail(start, 10), Tail::Expired(_)));
    for number in 0..2 * MAX_RESTARTS {
        store.forget(&ResourceId::new("g", &number.to_string()));
    }
    assert!(store.restarts.read().len() <= MAX_RESTARTS);
    let again = ResourceId::new("g", "0");
    assert!(matches!(store.log(&again).tail(forgotten, 10), Tail::Expired(_)));
}

#[test]
fn history_is_kept_for_its_time_and_within_its_budget() {
    let seconds = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let events = |retention: Retention, times: &[i64]| {
        let store = Store::new(0, retention);
        let start = store.view().revision();
        let mut expected = None;
        for time in times {
            expected =
                Some(commit_at(&store, "a/x", expected, Some(&object("x")), seconds(*time)).unwrap().rv);
        }
        match store.log(&pods()).tail(start, 100) {
            Tail::Events(events) => Some(events.len()),
            Tail::Expired(_) | Tail::Closed => None,
        }
    };
    let generous = Retention { free_bytes: 0, ..Retention::default() };
    assert_eq!(events(generous, &[0, 30, 60, 75]), Some(4));
    assert_eq!(events(generous, &[0, 30, 60, 76]), None);
    assert_eq!(events(Retention::default(), &[0, 1_000, 10_000]), Some(3));
    assert_eq!(events(Retention { bytes: 1_000, ..generous }, &[0, 1, 2, 3, 4]), None);
}

#[test]
fn the_budget_of_history_counts_converted_objects() {
    let first_is_kept = |is_converted: bool| {
        let store = Store::new(0, Retention { bytes: 12_000, ..Retention::default() });
        let start = store.view().revision();
        let mut expected = None;
        for _ in 0..5 {
            let stored = commit(&store, "a/x", expected, Some(&object("x"))).unwrap();
            if is_converted {
                represented(&stored, "v2", 4 << 10);
            }
            expected = Some(stored.rv);
        }
        matches!(store.log(&pods()).tail(start, 100), Tail::Events(_))
    };
    assert!(first_is_kept(false));
    assert!(!first_is_kept(true), "four old objects with another form take more than 12 kB");
}

#[test]
fn old_events_that_take_little_memory_are_forgotten_on_request() {
    let seconds = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let store = store();
    let start = store.view().revision();
    let first = commit_at(&store, "a/x", None, Some(&object("x")), seconds(0)).unwrap().rv;
    commit_at(&store, "a/x", Some(first), Some(&object("x")), seconds(60)).unwrap();
    let events = |after| match store.log(&pods()).tail(after, 100) {
        Tail::Events(events) => Some(events.len()),
        Tail::Expired(_) | Tail::Closed => None,
    };
    store.forget_old_events(seconds(75));
    assert_eq!(events(start), Some(2));
    store.forget_old_events(seconds(76));
    assert_eq!((events(start), events(first)), (None, Some(1)));
}

#[test]
fn an_object_with_an_end_is_found_when_it_is_due() {
    let store = store();
    let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(10);
    let later = at + SignedDuration::from_secs(10);
    let write = |expected, expires| {
        let attrs = ObjectAttrs { expires, ..ObjectAttrs::default() };
        let draft = Some(draft(&store, &object("x"), attrs));
        let write = Write { id: &pods(), key: "a/x", expected, draft, now: Timestamp::UNIX_EPOCH };
        store.commit_now(write, |_| Ok(())).unwrap().rv
    };
    let due = |now| store.view().expired(now).count();
    let first = write(None, Some(at));
    assert_eq!((due(Timestamp::UNIX_EPOCH), due(at)), (0, 1));
    // Another write moves the expiry; a removal forgets the expiry.
    let second = write(Some(first), Some(later));
    assert_eq!((due(at), due(later)), (0, 1));
    commit(&store, "a/x", Some(second), None).unwrap();
    assert_eq!(due(later), 0);
}

#[test]
fn the_index_of_labels_waits_for_the_event_of_a_view() {
    let store = store();
    commit(&store, "a/x", None, Some(&object("x"))).unwrap();
    let mut index = LabelIndex::new(&store.view(), &pods());
    let mut labelled = object("y");
    labelled["metadata"]["labels"] = json!({"app": "y"});
    // A reader may see the view of a commit before the event is in the log.
    let behind = Log::new(0);
    commit(&store, "a/y", None, Some(&labelled)).unwrap();
    let view = store.view();
    assert!(!index.follow(&view, &pods(), &behind));
    assert!(index.follow(&view, &pods(), &store.log(&pods())));
    assert_eq!(index.keys("app", "y").unwrap().len(), 1);
}

#[test]
fn an_index_of_labels_is_dropped_with_the_history_that_the_index_needs() {
    let store = Store::new(0, Retention { bytes: 1, ..Retention::default() });
    let selects =
        |label: &str| store.keys_by_label(&store.view(), &pods(), &[("app", &[label.to_owned()][..])]);
    let first = commit(&store, "a/x", None, Some(&object("x"))).unwrap().rv;
    selects("y");
    let indexes = || store.label_indexes.lock().len();
    assert_eq!(indexes(), 1);
    // The history has only the newest event: the index of the second revision follows that event.
    let second = commit(&store, "a/x", Some(first), Some(&object("x"))).unwrap().rv;
    assert_eq!(indexes(), 1);
    commit(&store, "a/x", Some(second), Some(&object("x"))).unwrap();
    assert_eq!(indexes(), 0);
    // An index of a resource without changes lacks nothing.
    selects("y");
    let write = |expected| {
        let draft = Some(draft(&store, &object("x"), ObjectAttrs::default()));
        let nodes = ResourceId::new("", "nodes");
        let write = Write { id: &nodes, key: "x", expected, draft, now: Timestamp::UNIX_EPOCH };
        store.commit_now(write, |_| Ok(())).unwrap().rv
    };
    let other = write(None);
    write(Some(other));
    assert_eq!(indexes(), 1);
}

proptest! {
    #[test]
    fn the_index_of_labels_agrees_with_the_objects(
        steps in prop::collection::vec((0..6_u8, prop::option::of(0..3_u8), any::<bool>()), 1..60),
    ) {
        let store = store();
        let mut views = vec![store.view()];
        for (key, label, select) in steps {
            let key = format!("a/{key}");
            let present = store.view().get(&pods(), &key).map(|stored| stored.rv);
            let object = label.map(|label| {
                let mut object = object(&key);
                object["metadata"]["labels"] = json!({"app": label.to_string(), "same": "x"});
                object
            });
            let _ = commit(&store, &key, present, object.as_ref());
            views.push(store.view());
            if !select {
                continue;
            }
            // The newest view, and a past view, which the index may refuse.
            for view in [&views[views.len() - 1], &views[views.len() / 2]] {
                let wanted = ["1".to_owned(), "2".to_owned()];
                let choices = [("same", &["x".to_owned()][..]), ("app", &wanted[..])];
                if let Some(keys) = store.keys_by_label(view, &pods(), &choices) {
                    let has = |(_, stored): &(_, &Arc<Stored>)| {
                        stored.labels().get("app").is_some_and(|label| label != "0")
                    };
                    let found: Vec<_> = view.range(&pods(), None).filter(has).map(|(key, _)| Arc::clone(key)).collect();
                    prop_assert_eq!(keys, found);
                }
            }
        }
    }
}

#[test]
fn derived_state_is_made_again_when_its_objects_change() {
    let derived = Derived::new(pods(), View::count);
    let store = store();
    let before = store.view();
    assert_eq!(*derived.get(&before), 0);
    commit(&store, "a/x", None, Some(&object("x"))).unwrap();
    assert_eq!(*derived.get(&store.view()), 1);
    assert_eq!(*derived.get(&before), 0);
    assert_eq!(*derived.get(&store.view()), 1);
}

#[test]
fn a_message_is_made_once_also_for_a_watch_that_lags() {
    let store = store();
    let log = store.log(&pods());
    let names: Vec<String> = (0..5).map(|number| format!("a/{number}")).collect();
    let objects: Vec<_> =
        names.iter().map(|name| commit(&store, name, None, Some(&object("x"))).unwrap()).collect();
    let mut made = 0;
    let mut message = |at: usize, change: &'static str, size: usize| {
        let make = || {
            made += 1;
            Ok::<_, ()>(Bytes::from(vec![at as u8; size]))
        };
        let bytes = log.message(change, &objects[at], make).unwrap();
        assert_eq!((bytes[0], bytes.len()), (at as u8, size));
        made
    };
    for at in [0, 1, 2] {
        assert_eq!(message(at, "ADDED", 10), at + 1);
    }
    assert_eq!((message(0, "ADDED", 10), message(2, "ADDED", 10)), (3, 3), "known");
    assert_eq!(message(1, "MODIFIED", 10), 4, "a watch with a selector sees another change");
    assert_eq!(message(1, "ADDED", 10), 4);
    // The oldest messages make room for large messages.
    message(3, "ADDED", 500 << 10);
    assert_eq!(message(2, "ADDED", 10), 5);
    message(4, "ADDED", 500 << 10);
    assert_eq!(message(4, "ADDED", 500 << 10), 6);
    assert_eq!(message(3, "ADDED", 500 << 10), 7);
}

#[test]
fn odd_watches_do_not_displace_the_message_of_all_others() {
    let store = store();
    let log = store.log(&pods());
    let object = commit(&store, "a/x", None, Some(&object("x"))).unwrap();
    let mut made = 0;
    let mut message = |change: &'static str, object: &Arc<Stored>| {
        let make = || {
            made += 1;
            Ok::<_, ()>(Bytes::from_static(change.as_bytes()))
        };
        assert_eq!(log.message(change, object, make).unwrap(), change);
        made
    };
    // The object leaves the selection of a watch, which then has an object for itself.
    assert_eq!(message("DELETED", &Arc::new(object.at(object.rv))), 1);
    assert_eq!(message("ADDED", &object), 2, "the object enters the selection of a watch");
    assert_eq!(message("MODIFIED", &object), 3);
    assert_eq!((message("MODIFIED", &object), message("ADDED", &object)), (3, 3), "both are kept");
}

/// Returns the representation of an object in a version with a text of `size` bytes.
fn represented(stored: &Arc<Stored>, version: &str, size: usize) -> Arc<Stored> {
    let layout = Layout { api_version: version.into(), schema: 0 };
    stored.representation(&layout, || {
        let value = json!({"kind": "Pod", "apiVersion": version, "metadata": {}, "data": "x".repeat(size)});
        Arc::new(stored.converted(&value, layout.clone(), ObjectAttrs::default()))
    })
}

#[test]
fn representations_in_proportion_to_the_object_are_kept() {
    let is_kept = |stored: &Stored, version: &str| {
        stored.known_representation(&Layout { api_version: version.into(), schema: 0 }).is_some()
    };
    let store = store();
    let small = commit(&store, "a/x", None, Some(&object("x"))).unwrap();
    assert_eq!(represented(&small, "v2", 1 << 20).value()["data"], "x".repeat(1 << 20));
    assert!(!is_kept(&small, "v2"), "a large representation of a small object is made for each read");
    represented(&small, "v2", 3 << 10);
    assert!(is_kept(&small, "v2"));
    represented(&small, "v3", 3 << 10);
    assert!(is_kept(&small, "v3") && !is_kept(&small, "v2"), "both are too large together");

    let mut large = object("y");
    large["data"] = json!("x".repeat(1 << 20));
    let large = commit(&store, "a/y", None, Some(&large)).unwrap();
    for version in ["v2", "v3", "v4"] {
        represented(&large, version, 1 << 20);
    }
    assert!(["v2", "v3", "v4"].iter().all(|version| is_kept(&large, version)));
}
