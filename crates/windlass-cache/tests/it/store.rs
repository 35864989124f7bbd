//! Reads of a store after writes.

use serde_json::{Value, json};
use windlass_cache::{
    Delta, IndexFn, ObjectEncoding, ObjectKey, ObjectRef, Query, RawObject, ReflectorId, ScanOptions,
    Scanner, Selector, Store, StoreOptions, StoreWriter,
};

const SOURCE: ReflectorId = ReflectorId(0);

fn object(name: &str, version: u64, more: &Value) -> RawObject {
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(), "managedFields": [{"manager": "x"}]},
    });
    let extra = more.as_object().expect("an object").clone();
    for (field, value) in extra {
        object["metadata"][field] = value;
    }
    RawObject::from_json(object.to_string().as_bytes()).expect("an object")
}

fn selected(store: &Store, selector: &Selector) -> Vec<RawObject> {
    store.query(&Query::new().selector(selector)).expect("no named index")
}

fn put(writer: &mut StoreWriter, object: &RawObject) -> Vec<String> {
    writer.write(|transaction| {
        let seen = ObjectRef::of(SOURCE, object);
        transaction.upsert(seen, false, |_| Ok(object.clone())).expect("an object");
        transaction.take_deltas().iter().map(show).collect()
    })
}

fn show(delta: &Delta) -> String {
    match delta {
        Delta::Added { object, .. } => format!("added {object:?}"),
        Delta::Updated { old, new } => format!("updated {old:?} {new:?}"),
        Delta::Deleted { last, final_state_unknown } => {
            format!("deleted {last:?} unknown={final_state_unknown}")
        }
    }
}

#[test]
fn objects_missing_from_a_list_are_deleted() {
    let (store, mut writer) = Store::new(StoreOptions::default());
    writer.write(|transaction| transaction.begin_list(SOURCE));
    for name in ["a", "b", "c"] {
        put(&mut writer, &object(name, 1, &json!({})));
    }
    writer.write(|transaction| transaction.sweep(SOURCE));
    writer.write(|transaction| transaction.begin_list(SOURCE));
    assert_eq!(put(&mut writer, &object("a", 1, &json!({}))), Vec::<String>::new());
    assert_eq!(put(&mut writer, &object("c", 2, &json!({}))), ["updated default/c@1 default/c@2"]);
    let gone: Vec<_> = writer.write(|transaction| {
        transaction.sweep(SOURCE);
        transaction.take_deltas().iter().map(show).collect()
    });
    assert_eq!(gone, ["deleted default/b@1 unknown=true"]);
    assert_eq!(store.len(), 2);
    assert!(store.get(&ObjectKey::namespaced("default", "b")).is_none());
}

/// After a change of a CRD's conversion, defaults or pruning, the server serves other content at the same resource version.
#[test]
fn other_content_at_the_same_resource_version_is_an_update() {
    let by_color = IndexFn::field("metadata.annotations.color".parse().expect("a path"));
    for encoding in [ObjectEncoding::Raw, ObjectEncoding::Compressed] {
        let indexes = [("color".to_owned(), by_color.clone())].into();
        let (store, mut writer) = Store::new(StoreOptions { indexes, encoding, ..StoreOptions::default() });
        let red = object("a", 1, &json!({"annotations": {"color": "red"}}));
        let blue = object("a", 1, &json!({"annotations": {"color": "blue"}, "labels": {"app": "x"}}));
        put(&mut writer, &red);
        assert_eq!(put(&mut writer, &red), Vec::<String>::new());
        assert_eq!(put(&mut writer, &blue), ["updated default/a@1 default/a@1"]);
        assert_eq!(put(&mut writer, &blue), Vec::<String>::new());
        assert_eq!(store.index_values("color").expect("an index"), ["blue"]);
        assert_eq!(selected(&store, &"app=x".parse().expect("a selector")).len(), 1);
        assert_eq!(store.memory().objects, store.list().iter().map(RawObject::memory).sum::<usize>());
    }
}

/// The items of a list have `apiVersion` and `kind` in another place than the objects of a watch.
#[test]
fn the_order_of_the_top_level_members_is_no_change() {
    let (_, mut writer) = Store::new(StoreOptions::default());
    let metadata = r#""metadata":{"name":"a","uid":"u","resourceVersion":"1"}"#;
    let parse = |json: String| RawObject::from_json(json.as_bytes()).expect("an object");
    put(&mut writer, &parse(format!(r#"{{"kind":"Pod","apiVersion":"v1",{metadata},"spec":{{"a":1}}}}"#)));
    let item = parse(format!(r#"{{"apiVersion":"v1","kind":"Pod",{metadata},"spec":{{"a":1}}}}"#));
    assert_eq!(put(&mut writer, &item), Vec::<String>::new());
    let changed = parse(format!(r#"{{"apiVersion":"v1","kind":"Pod",{metadata},"spec":{{"a":2}}}}"#));
    assert_eq!(put(&mut writer, &changed), ["updated a@1 a@1"]);
}

/// Similar objects are stored as differences from a base.
#[test]
fn content_is_compared_across_bases() {
    let (store, mut writer) = Store::new(StoreOptions::default());
    let json = |name: &str, size: u32| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","uid":"uid-{name}","resourceVersion":"1"}},"spec":{{"size":{size},"schedulerName":"default-scheduler","restartPolicy":"Always","dnsPolicy":"ClusterFirst"}}}}"#
        )
    };
    let list = |writer: &mut StoreWriter, scanner: &mut Scanner, size: u32| {
        let names = (0..40).map(|n| format!("p{n}"));
        names
            .flat_map(|name| put(writer, &scanner.object(json(&name, size).as_bytes()).expect("an object")))
            .count()
    };
    let scanner = || Scanner::new(&ScanOptions { one_kind: true, ..ScanOptions::default() });
    let mut first = scanner();
    assert_eq!(list(&mut writer, &mut first, 1), 40, "added");
    assert!(store.list().iter().filter(|object| object.has_base()).count() > 30);
    assert_eq!(list(&mut writer, &mut first, 1), 0, "the same base");
    assert_eq!(list(&mut writer, &mut scanner(), 1), 0, "an equal base of another watch");
    assert_eq!(list(&mut writer, &mut first, 2), 40, "other values");
}

#[test]
fn another_uid_is_another_object() {
    let (_, mut writer) = Store::new(StoreOptions::default());
    put(&mut writer, &object("a", 1, &json!({})));
    let again = object("a", 2, &json!({"uid": "other"}));
    assert_eq!(put(&mut writer, &again), ["deleted default/a@1 unknown=true", "added default/a@2"]);
}

#[test]
fn indexes_follow_the_objects() {
    let by_color = IndexFn::field("metadata.annotations.color".parse().expect("a path"));
    let indexes = [("color".to_owned(), by_color)].into();
    let (store, mut writer) = Store::new(StoreOptions { indexes, ..StoreOptions::default() });
    let names = |objects: Vec<RawObject>| objects.iter().map(|o| o.name().to_owned()).collect::<Vec<_>>();
    let owner = json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u1", "controller": true}]);
    put(&mut writer, &object("a", 1, &json!({"labels": {"app": "x"}, "annotations": {"color": "red"}})));
    put(&mut writer, &object("b", 1, &json!({"labels": {"app": "y"}, "ownerReferences": owner})));
    let selector = |text: &str| text.parse::<Selector>().expect("a selector");
    assert_eq!(names(selected(&store, &selector("app=x"))), ["a"]);
    assert_eq!(names(selected(&store, &selector("app in (x,y)"))), ["a", "b"]);
    assert_eq!(names(store.controlled_by("u1")), ["b"]);
    assert_eq!(names(store.by_index("color", "red").expect("an index")), ["a"]);
    put(&mut writer, &object("a", 2, &json!({"labels": {"app": "y"}, "annotations": {"color": "blue"}})));
    assert_eq!(names(selected(&store, &selector("app=x"))), Vec::<String>::new());
    assert_eq!(names(selected(&store, &selector("app=y"))), ["a", "b"]);
    assert_eq!(store.index_values("color").expect("an index"), ["blue"]);
    assert!(store.by_index("shape", "round").unwrap_err().to_string().contains("known indexes: color"));
}

/// Returns the labels and the owner of an object with a number, in some state.
fn labelled(number: u64, state: u64) -> Value {
    let label = ["x", "y", "z"][((number + state) % 3) as usize];
    json!({"labels": {"app": label, "same": "all"}, "ownerReferences": [{"uid": format!("o{}", (number + state) % 4)}]})
}

#[test]
fn a_query_that_missed_an_index_reads_the_same_from_the_index() {
    let (store, mut writer) = Store::new(StoreOptions::default());
    let name = |number: u64| format!("object-{number:02}");
    let check = |store: &Store| {
        let all = store.list();
        let expected = |wanted: &dyn Fn(&RawObject) -> bool| -> Vec<String> {
            all.iter().filter(|object| wanted(object)).map(|object| format!("{object:?}")).collect()
        };
        let read =
            |objects: Vec<RawObject>| objects.iter().map(|object| format!("{object:?}")).collect::<Vec<_>>();
        let selector: Selector = "app in (x,z),same=all".parse().expect("a selector");
        let is_selected = |object: &RawObject| matches!(object.label("app"), Some("x" | "z"));
        let is_owned = |object: &RawObject| object.owner_references().any(|owner| owner.uid == "o1");
        assert_eq!(read(selected(store, &selector)), expected(&is_selected));
        assert_eq!(read(store.owned_by("o1")), expected(&is_owned));
        assert_eq!(read(store.namespace("default")), expected(&|_| true));
        let both = store.query(&Query::new().namespace("default").owner("o1").selector(&selector));
        assert_eq!(
            read(both.expect("no named index")),
            expected(&|object| is_selected(object) && is_owned(object))
        );
    };
    (0..30).for_each(|number| drop(put(&mut writer, &object(&name(number), 1, &labelled(number, 0)))));
    let before = store.memory().index;
    check(&store);
    assert_eq!(store.memory().index, before, "a read adds no index");
    for state in 1..20 {
        for number in (0..30).filter(|number| (number * state) % 7 < 3) {
            put(&mut writer, &object(&name(number), 1 + state, &labelled(number, state)));
        }
        let gone = name(state);
        writer.write(|transaction| transaction.remove(SOURCE, Some("default"), &gone, None));
        check(&store);
        assert!(store.memory().index > before, "the next write adds the indexes");
    }
    writer.write(|transaction| transaction.begin_list(SOURCE));
    put(&mut writer, &object("new", 1, &labelled(0, 1)));
    writer.write(|transaction| transaction.sweep(SOURCE));
    check(&store);
    assert_eq!(store.len(), 1);
}

#[test]
fn a_query_that_finds_nothing_wants_no_index() {
    let (store, mut writer) = Store::new(StoreOptions::default());
    (0..30)
        .for_each(|number| drop(put(&mut writer, &object(&format!("o{number}"), 1, &labelled(number, 0)))));
    assert_eq!(selected(&store, &Selector::from_labels([("app", "x")])).len(), 10);
    writer.write(|_| ());
    let indexed = store.memory().index;
    // The index of the label shows that no object matches.
    let nothing = Selector::from_labels([("app", "nothing")]);
    let found = store.query(&Query::new().namespace("default").selector(&nothing)).expect("no named index");
    assert!(found.is_empty());
    writer.write(|_| ());
    assert_eq!(store.memory().index, indexed);
    assert_eq!(store.namespace("default").len(), 30);
    writer.write(|_| ());
    assert!(store.memory().index > indexed, "a query that looks at all objects wants an index");
}

/// In each transaction, two objects swap their labels: every reader sees exactly a single object with each label.
#[test]
#[cfg_attr(miri, ignore = "many queries")]
fn an_index_that_is_added_under_concurrent_writes_is_consistent() {
    let (store, mut writer) = Store::new(StoreOptions::default());
    let label = |value: &str| json!({"labels": {"app": value}});
    let objects: Vec<_> = (0..20).map(|number| object(&format!("o{number}"), 1, &label("other"))).collect();
    let states = [("x", "y"), ("y", "x")]
        .map(|(one, other)| [object("one", 1, &label(one)), object("other", 1, &label(other))]);
    let mut write = |objects: &[RawObject]| {
        writer.write(|transaction| {
            for object in objects {
                let seen = ObjectRef::of(SOURCE, object);
                transaction.upsert(seen, false, |_| Ok(object.clone())).expect("an object");
            }
        });
    };
    write(&objects);
    write(&states[0]);
    std::thread::scope(|scope| {
        for value in ["x", "y", "x"] {
            let store = &store;
            scope.spawn(move || {
                let selector = Selector::from_labels([("app", value)]);
                for _ in 0..2_000 {
                    let found = selected(store, &selector);
                    assert_eq!(found.len(), 1, "{found:?}");
                    assert_eq!(found[0].label("app"), Some(value));
                }
            });
        }
        (0..1_000).for_each(|number| write(&states[number % 2]));
    });
    assert_eq!(selected(&store, &Selector::from_labels([("app", "other")])).len(), objects.len());
}

#[test]
fn managed_fields_are_not_kept() {
    let object = object("a", 1, &json!({"annotations": {"k": "v"}}));
    let kept: Value = serde_json::from_slice(&object.json()).expect("JSON");
    assert_eq!(kept["metadata"].get("managedFields"), None);
    assert_eq!(object.annotation("k").as_deref(), Some("v"));
    assert_eq!(object.labels().count(), 0);
}

#[test]
fn a_decoder_remembers() {
    let (store, mut writer) = Store::new(StoreOptions::default());
    put(&mut writer, &object("a", 1, &json!({})));
    let object = store.get(&ObjectKey::namespaced("default", "a")).expect("is there");
    let first = store.decoder::<Value>().decode(&object).expect("decodes");
    let second = store.decoder::<Value>().decode(&object).expect("decodes");
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    store.decoder::<Vec<u8>>().decode(&object).expect_err("an object is no list");
}

#[test]
fn a_list_larger_than_the_memory_of_decoded_objects_evicts_none() {
    let (store, mut writer) = Store::new(StoreOptions { memo_bytes: 10_000, ..StoreOptions::default() });
    for number in 0..100 {
        put(&mut writer, &object(&format!("object-{number:02}"), 1, &json!({})));
    }
    let decoder = store.decoder::<Value>();
    let list = || decoder.all(|object, error| panic!("{object:?}: {error}"));
    let (first, second) = (list(), list());
    assert_eq!(first.len(), 100);
    let same = first.iter().zip(&second).filter(|(one, other)| std::sync::Arc::ptr_eq(one, other)).count();
    assert!((5..50).contains(&same), "{same} objects are decoded once");
    put(&mut writer, &object("object-00", 2, &json!({})));
    assert_eq!(list()[0]["metadata"]["resourceVersion"], "2");
    let mut failed = Vec::new();
    let numbers = store.decoder::<Vec<u8>>().all(|object, _| failed.push(object.name().to_owned()));
    assert_eq!((numbers.len(), failed.len(), failed[99].as_str()), (0, 100, "object-99"));
}

/// A program may query by label keys that the program makes up.
#[test]
fn queries_by_many_labels_make_a_bounded_number_of_indexes() {
    let (store, mut writer) = Store::new(StoreOptions::default());
    let labels: serde_json::Map<_, _> = (0..40).map(|key| (format!("key{key}"), json!("yes"))).collect();
    for number in 0..100 {
        put(&mut writer, &object(&format!("o{number}"), number + 1, &json!({ "labels": &labels })));
    }
    let mut memory = Vec::new();
    for key in 0..40 {
        let selector = format!("key{key}=yes").parse().expect("a selector");
        for _ in 0..2 {
            assert_eq!(selected(&store, &selector).len(), 100, "{selector}");
            put(&mut writer, &object("changing", 1000 + key, &json!({})));
        }
        memory.push(store.memory().index);
    }
    assert!(memory[0] < memory[10], "each of the first labels has an index: {memory:?}");
    assert_eq!(memory[20], memory[39], "further labels have none: {memory:?}");
}
