//! The error of an object that does not decode.

use std::collections::BTreeMap;

use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Value, json};
use windlass_cache::RawObject;

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only decoded")]
struct Backup {
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only decoded")]
struct Spec {
    retention: u32,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    stores: Vec<Store>,
    #[serde(default)]
    slots: BTreeMap<u8, bool>,
    port: Option<Port>,
    #[serde(default, deserialize_with = "schedule")]
    schedule: (),
}

#[derive(Debug, Default, Deserialize)]
enum Policy {
    #[default]
    Keep,
    Drop,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(dead_code, reason = "only decoded")]
enum Store {
    Bucket { name: String, size: i64 },
    Disk(u8),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only decoded")]
enum Port {
    Number(u16),
    Named { name: String },
}

/// A type with an error message that contains the value.
fn schedule<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let text = String::deserialize(deserializer)?;
    Err(D::Error::custom(format!("invalid value: `{text}`, expected {text}")))
}

fn error(spec: &Value) -> String {
    let object = json!({"metadata": {"name": "a", "namespace": "b", "resourceVersion": "7"}, "spec": spec});
    let object = RawObject::from_json(object.to_string().as_bytes()).expect("an object");
    object.decode::<Backup>().map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn the_error_names_the_object_the_field_and_the_problem() {
    let says = |spec: Value, reason: &str| {
        let expected = format!("b/a (resourceVersion 7) does not decode as Backup: {reason}");
        assert_eq!(error(&spec), expected);
    };
    says(json!({"retention": "seven"}), "spec.retention: expected u32, found a string");
    says(
        json!({"retention": 5_000_000_000_u64}),
        "spec.retention: expected u32, found an integer with another value",
    );
    says(json!({"retention": 1.5}), "spec.retention: expected u32, found a number with a fraction");
    says(json!({}), "spec: the field `retention` is missing");
    says(json!([]), "spec: expected struct Spec with 6 elements, found another length");
    says(
        json!({"retention": 1, "policy": "hunter2"}),
        "spec.policy: expected `Keep` or `Drop`, found another string",
    );
    says(
        json!({"retention": 1, "stores": [{"type": "bucket", "name": "x", "size": true}]}),
        "spec.stores: expected i64, found a boolean",
    );
    says(json!({"retention": 1, "slots": {"3": "x"}}), "spec.slots.3: expected a boolean, found a string");
    says(json!({"retention": 1, "slots": {"a b": true}}), "spec.slots[\"a b\"]: expected a number as key");
    says(json!({"retention": 1, "port": "x"}), "spec.port: matches no variant of Port");
    says(json!({"retention": 1, "schedule": "x"}), "spec: the value is not accepted by its type");
    let unknown = error(&json!({"retention": 1, "color": "x"}));
    assert!(unknown.contains("expected the fields one of `retention`"), "{unknown}");
}

#[test]
fn the_type_is_named_without_its_modules() {
    let object = RawObject::from_json(br#"{"metadata":{"name":"a"}}"#).expect("an object");
    let error = object.decode::<Vec<BTreeMap<String, Backup>>>().expect_err("not an array");
    let expected = "a (resourceVersion ) does not decode as Vec<BTreeMap<String, Backup>>: expected a sequence, found an object";
    assert_eq!(error.to_string(), expected);
}

/// Strings with characters that error messages use, and numbers.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[`\"', :]{0,3}[A-Z0-9]{4,9}[`\"', :]{0,3}".prop_map(Value::from),
        (1_000..u64::MAX).prop_map(Value::from),
        (i64::MIN..-1_000).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let fields =
        ["retention", "policy", "stores", "slots", "port", "schedule", "type", "name", "size", "3", "other"];
    scalar().prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(select(fields.to_vec()), inner, 0..5).prop_map(|members| {
                Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

/// Collects the strings and numbers.
fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, found)),
        Value::String(text) => found.push(text.trim_matches(|c| "`\"', :".contains(c)).to_owned()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_error_repeats_no_value(spec in value()) {
        let error = error(&spec);
        let mut found = Vec::new();
        leaves(&spec, &mut found);
        for leaf in found {
            prop_assert!(!error.contains(&leaf), "{leaf} in: {error}");
        }
    }
}
