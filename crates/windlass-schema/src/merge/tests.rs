use proptest::prelude::*;
use serde_json::{Value, json};

use super::strategic_merge;
use crate::Catalog;

/// Cases recorded from a real API server: kind, object, patch, and the resulting fields or the error.
const CASES: &str = include_str!("cases.json");

#[test]
fn an_element_that_is_added_where_another_is_deleted_comes_after_those_of_the_object() {
    let schema = Catalog::builtin().schema("", "v1", "Service").unwrap();
    let ports = |ports: &[u16]| -> Value { ports.iter().map(|port| json!({"port": port})).collect() };
    let service = json!({"spec": {"ports": ports(&[1, 2, 4])}});
    let mut patch = json!({"spec": {"$setElementOrder/ports": ports(&[2, 3]), "ports": [{"port": 3}]}});
    let merged = |patch: &Value| {
        strategic_merge(&schema, service.clone(), patch.clone()).unwrap()["spec"]["ports"].clone()
    };
    assert_eq!(merged(&patch), ports(&[1, 2, 3, 4]));
    patch["spec"]["ports"] = json!([{"port": 3}, {"port": 1, "$patch": "delete"}]);
    assert_eq!(merged(&patch), ports(&[2, 4, 3]));
}

#[test]
fn an_order_with_a_number_is_refused_where_an_element_is_not_found_before_the_number() {
    let schema = Catalog::builtin().schema("", "v1", "Pod").unwrap();
    let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
    let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "a"}, 5, {"name": "b"}]}});
    let error = strategic_merge(&schema, pod, patch).unwrap_err().to_string();
    assert!(error.contains("value for key 1 is not a map"), "{error}");
}

#[test]
fn an_order_of_many_elements_is_kept() {
    let schema = Catalog::builtin().schema("", "v1", "Pod").unwrap();
    let names = |names: &mut dyn Iterator<Item = u32>| -> Value {
        names.map(|name| json!({"name": name.to_string()})).collect()
    };
    let pod = json!({"spec": {"containers": names(&mut (0..20_000))}});
    let order = names(&mut (0..20_000).rev());
    let patch = json!({"spec": {"$setElementOrder/containers": order}});
    let merged = strategic_merge(&schema, pod, patch).unwrap();
    assert_eq!(merged["spec"]["containers"], order);
}

#[test]
fn patches_do_what_they_do_on_a_real_server() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    assert!(cases.len() > 15);
    let catalog = Catalog::builtin();
    for case in cases {
        let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
        let api_version = text("apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let schema = catalog.schema(group, version, &text("kind")).unwrap();
        let result = strategic_merge(&schema, case["object"].clone(), case["patch"].clone());
        match &case["error"] {
            Value::Null => {
                let mut result = result.unwrap();
                let mut expected = case["result"].clone();
                crate::default(&schema, &mut result);
                crate::default(&schema, &mut expected);
                assert_eq!(result, expected, "{}", text("name"));
            }
            error => assert_eq!(result.unwrap_err().to_string(), error.as_str().unwrap(), "{}", text("name")),
        }
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..5_i64).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop_oneof![
            Just("spec"),
            Just("containers"),
            Just("name"),
            Just("env"),
            Just("ports"),
            Just("containerPort"),
            Just("metadata"),
            Just("finalizers"),
            Just("volumes"),
            Just("$patch"),
            Just("$retainKeys"),
            Just("$setElementOrder/containers"),
            Just("$deleteFromPrimitiveList/finalizers"),
            Just("emptyDir"),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.prop_map(str::to_owned), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_patch_ends_in_a_result_or_an_error(original in json_value(), patch in json_value()) {
        let schema = Catalog::builtin().schema("", "v1", "Pod").unwrap();
        let _ = strategic_merge(&schema, original, patch);
    }

    #[test]
    fn the_empty_patch_changes_nothing(original in json_value()) {
        let schema = Catalog::builtin().schema("", "v1", "Pod").unwrap();
        if original.is_object() {
            prop_assert_eq!(strategic_merge(&schema, original.clone(), json!({})), Ok(original));
        }
    }
}
