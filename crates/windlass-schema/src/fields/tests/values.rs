use serde_json::{Value, json};

use super::schema;
use crate::fields::{Duplicates, FieldSet, compare, extract, merge, remove, validate_typed};

fn merged(base: Value, config: Value) -> Value {
    merge(schema().root(), &base, &config).unwrap()
}

fn fields(value: Value) -> String {
    FieldSet::of(schema().root(), &value).unwrap().to_string()
}

/// Returns the error of an applied configuration.
fn problem(value: Value) -> String {
    validate_typed(schema().root(), &value, Duplicates::Forbid).unwrap_err().to_string()
}

#[test]
fn what_a_value_sets_are_its_leaves_elements_and_entries() {
    assert_eq!(fields(json!({"n": 1, "list": ["a"], "atomic": {"a": "b"}})), ".atomic\n.list\n.n");
    assert_eq!(fields(json!({"set": ["b", "a"], "map": {"a": "b"}})), ".map.a\n.set[=\"a\"]\n.set[=\"b\"]");
    assert_eq!(
        fields(json!({"ports": [{"port": 80}]})),
        ".ports[port=80,protocol=\"TCP\"]\n.ports[port=80,protocol=\"TCP\"].port"
    );
    assert_eq!(fields(json!({"any": {"a": [{"b": 1}], "c": {"d": 1}}})), ".any.a\n.any.c\n.any.c.d");
    assert_eq!(fields(json!({"nested": {}, "map": null, "set": []})), ".map\n.nested");
}

#[test]
fn duplicates_are_owned_together() {
    assert_eq!(
        fields(json!({"ports": [{"port": 80, "name": "a"}, {"port": 80}]})),
        ".ports[port=80,protocol=\"TCP\"]"
    );
}

#[test]
fn a_mismatch_is_reported_with_its_path() {
    assert_eq!(problem(json!({"n": "1"})), ".n: expected numeric (int or float), got string");
    assert_eq!(
        problem(json!({"text": {"a": [1, null, "b"]}})),
        r#".text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{1, interface {}(nil), "b"}}}"#
    );
    assert_eq!(problem(json!({"set": {}})), ".set: expected list, got &{map[]}");
    assert_eq!(problem(json!({"map": ["a", 1]})), ".map: expected map, got &{[a 1]}");
    assert_eq!(problem(json!({"nested": {"c": 1}})), ".nested.c: field not declared in schema");
    assert_eq!(problem(json!({"set": ["a", "a"]})), r#".set: duplicate entries for key [="a"]"#);
    assert_eq!(
        problem(json!({"ports": [{"port": 80, "protocol": "TCP"}, {"port": 80}]})),
        r#".ports: duplicate entries for key [port=80,protocol="TCP"]"#
    );
    assert_eq!(
        problem(json!({"ports": ["a"]})),
        ".ports: element 0: associative list with keys may not have non-map elements"
    );
    assert_eq!(
        problem(json!({"set": [null]})),
        ".set: element 0: associative list without keys has an element that's an explicit null"
    );
}

#[test]
fn texts_with_a_format_may_be_any_scalar_but_for_bytes() {
    let problem = |kind: &str, object: Value| {
        let schema = crate::Catalog::builtin().schema("", "v1", kind).unwrap();
        validate_typed(schema.root(), &object, Duplicates::Forbid).map_err(|errors| errors.to_string())
    };
    assert_eq!(problem("Event", json!({"eventTime": 3, "firstTimestamp": true})), Ok(()));
    let time = problem("Event", json!({"eventTime": {}})).unwrap_err();
    assert_eq!(time, ".eventTime: expected any scalar, got &{map[]}");
    let bytes = problem("Secret", json!({"data": {"a": 1}})).unwrap_err();
    assert_eq!(bytes, ".data.a: expected string, got &value.valueUnstructured{Value:1}");
}

#[test]
fn stored_objects_may_have_duplicates() {
    let object = json!({"set": ["a", "a"], "ports": [{"port": 80}, {"port": 80}]});
    validate_typed(schema().root(), &object, Duplicates::Allow).unwrap();
}

#[test]
fn very_many_errors_are_cut() {
    let object = json!({"ports": vec![json!({"port": "x"}); 100_000]});
    let errors = validate_typed(schema().root(), &object, Duplicates::Allow).unwrap_err();
    assert!(errors.0.len() <= 1025, "{}", errors.0.len());
}

#[test]
fn lists_are_merged_in_the_order_of_the_configuration() {
    let set =
        |base: &[&str], config: &[&str]| merged(json!({"set": base}), json!({"set": config}))["set"].clone();
    assert_eq!(set(&["a", "b", "c"], &["c", "a"]), json!(["b", "c", "a"]));
    assert_eq!(set(&["a", "b"], &["c"]), json!(["a", "b", "c"]));
    assert_eq!(set(&["a", "b", "c"], &["x", "b", "y"]), json!(["a", "x", "b", "c", "y"]));
    assert_eq!(set(&[], &["b", "a"]), json!(["b", "a"]));
}

#[test]
fn duplicates_in_the_object_are_replaced() {
    let base = json!({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}, {"port": 2}]});
    let config = json!({"ports": [{"port": 1}]});
    assert_eq!(merged(base, config), json!({"ports": [{"port": 1}, {"port": 2}]}));
}

#[test]
fn empty_and_null_are_kept_apart() {
    assert_eq!(merged(json!({"map": {}}), json!({"map": null})), json!({"map": null}));
    assert_eq!(merged(json!({"map": null}), json!({"map": {}})), json!({"map": {}}));
    assert_eq!(merged(json!({"map": {"a": "b"}}), json!({"map": null})), json!({"map": {"a": "b"}}));
    assert_eq!(merged(json!({"list": ["a"]}), json!({"list": null})), json!({"list": null}));
    let changed = compare(schema().root(), &json!({"map": null}), &json!({"map": {}})).unwrap();
    assert_eq!(changed.modified.to_string(), ".map");
}

#[test]
fn a_comparison_names_added_changed_and_removed_fields() {
    let old = json!({"n": 1, "set": ["a", "b"], "list": ["a"], "nested": {"a": 1}, "any": {"x": 1}});
    let new = json!({"n": 1.0, "set": ["b", "c"], "list": ["b"], "nested": {"b": 1}, "any": {"x": {"y": 1}}});
    let changed = compare(schema().root(), &old, &new).unwrap();
    assert_eq!(changed.added.to_string(), ".any.x.y\n.nested.b\n.set[=\"c\"]");
    assert_eq!(changed.modified.to_string(), ".list\n.any.x");
    assert_eq!(changed.removed.to_string(), ".nested.a\n.set[=\"a\"]");
    assert!(!changed.is_same());
}

#[test]
fn the_order_of_a_set_is_no_difference() {
    assert!(
        compare(schema().root(), &json!({"set": ["a", "b"]}), &json!({"set": ["b", "a"]})).unwrap().is_same()
    );
}

#[test]
fn fields_are_removed_and_extracted() {
    let object = json!({"n": 1, "set": ["a", "b"], "ports": [{"port": 80, "name": "x", "protocol": "UDP"}]});
    let set = FieldSet::of(schema().root(), &json!({"n": 1, "set": ["a"]})).unwrap();
    let rest = json!({"set": ["b"], "ports": [{"port": 80, "name": "x", "protocol": "UDP"}]});
    assert_eq!(remove(schema().root(), &object, &set), rest);
    let name = json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"UDP\"}": {"f:name": {}}}});
    let name = FieldSet::from_v1(&name).unwrap();
    assert_eq!(extract(schema().root(), &object, &name, false), json!({"ports": [{"name": "x"}]}));
    let with_keys = json!({"ports": [{"name": "x", "port": 80, "protocol": "UDP"}]});
    assert_eq!(extract(schema().root(), &object, &name, true), with_keys);
    let all = FieldSet::from_v1(&json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}})).unwrap();
    assert_eq!(remove(schema().root(), &json!({"set": ["a", "b"]}), &all), json!({"set": null}));
}

#[test]
fn deep_values_are_an_error() {
    let mut deep = (0..600).fold(json!(1), |below, _| json!({"a": below}));
    deep = json!({"any": deep});
    let root = schema();
    assert!(FieldSet::of(root.root(), &deep).is_err());
    assert!(merge(root.root(), &json!({}), &deep).is_err());
    assert!(compare(root.root(), &json!({}), &deep).is_err());
    assert!(validate_typed(root.root(), &deep, Duplicates::Forbid).is_err());
}

#[test]
fn custom_resources_have_the_metadata_of_every_object() {
    assert_eq!(
        fields(
            json!({"apiVersion": "a", "metadata": {"finalizers": ["x"], "ownerReferences": [{"uid": "u"}]}})
        ),
        ".apiVersion\n.metadata.finalizers[=\"x\"]\n.metadata.ownerReferences[uid=\"u\"]"
    );
}

#[test]
fn the_published_schema_decides_how_built_in_lists_are_owned() {
    let catalog = crate::Catalog::builtin();
    let fields = |kind: &str, value: Value| {
        let schema = catalog.schema("", "v1", kind).unwrap();
        FieldSet::of(schema.root(), &value).unwrap().to_string()
    };
    // The default of a key counts, even an empty one.
    assert_eq!(
        fields(
            "Pod",
            json!({"spec": {"imagePullSecrets": [{}], "containers": [{"name": "a", "ports": [{"containerPort": 1}]}]}})
        ),
        r#".spec.containers[name="a"]
.spec.containers[name="a"].name
.spec.containers[name="a"].ports[containerPort=1,protocol="TCP"]
.spec.containers[name="a"].ports[containerPort=1,protocol="TCP"].containerPort
.spec.imagePullSecrets[name=""]"#
    );
    // ObjectReference is atomic, but not as the claim of a volume.
    assert_eq!(
        fields("PersistentVolume", json!({"spec": {"claimRef": {"name": "a"}}})),
        ".spec.claimRef.name"
    );
    assert_eq!(
        fields(
            "Service",
            json!({"spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "x"}]}})
        ),
        r#".spec.selector
.spec.ports[port=80,protocol="TCP"]
.spec.ports[port=80,protocol="TCP"].port
.spec.ports[port=80,protocol="TCP"].targetPort"#
    );
}
