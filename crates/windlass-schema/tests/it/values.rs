//! Generators of schemas and objects. The generators use few names, so that objects often match a schema.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NAMES: [&str; 8] = ["apiVersion", "kind", "metadata", "spec", "a", "b", "items", "name"];

fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn members(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec((name(), inner), 0..5).prop_map(|members| members.into_iter().collect())
}

/// Any JSON value.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c.:{}0-9]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner).prop_map(Value::from),
        ]
    })
}

/// An object with `apiVersion` and `kind`.
pub(crate) fn object() -> impl Strategy<Value = Value> {
    members(value()).prop_map(|mut members| {
        members.insert("apiVersion".to_owned(), "g/v1".into());
        members.insert("kind".to_owned(), "K".into());
        Value::Object(members)
    })
}

/// A schema in which each node has a type. Defaults are arbitrary values.
pub(crate) fn schema() -> impl Strategy<Value = Value> {
    let scalar = proptest::sample::select(vec!["string", "integer", "number", "boolean"]);
    let leaf = (scalar, proptest::option::of(value()), any::<bool>()).prop_map(
        |(kind, default, nullable)| json!({"type": kind, "default": default, "nullable": nullable}),
    );
    leaf.prop_recursive(4, 40, 4, |inner| {
        let object = (members(inner.clone()), any::<bool>(), any::<bool>(), proptest::option::of(value()));
        prop_oneof![
            object.prop_map(|(properties, preserve, embedded, default)| json!({
                "type": "object",
                "properties": properties,
                "default": default,
                "x-kubernetes-preserve-unknown-fields": preserve,
                "x-kubernetes-embedded-resource": embedded,
            })),
            inner.clone().prop_map(|inner| json!({"type": "object", "additionalProperties": inner})),
            (inner, proptest::sample::select(vec!["atomic", "set", "map"])).prop_map(|(items, kind)| json!({
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": kind,
                "x-kubernetes-list-map-keys": ["name"],
            })),
        ]
    })
    .prop_map(|inner| json!({"type": "object", "properties": {"spec": inner}}))
}

/// Any JSON value with the keywords of a schema.
pub(crate) fn wild_schema() -> impl Strategy<Value = Value> {
    let keyword = proptest::sample::select(vec![
        "type",
        "properties",
        "items",
        "additionalProperties",
        "default",
        "enum",
        "pattern",
        "required",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "minimum",
        "multipleOf",
        "maxLength",
        "format",
        "nullable",
        "metadata",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-int-or-string",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-validations",
        "x-kubernetes-preserve-unknown-fields",
    ]);
    let leaf = prop_oneof![
        proptest::sample::select(vec![
            "object", "array", "string", "integer", "map", "set", "(a", "^a$", "date"
        ])
        .prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(5, 60, 5, move |inner| {
        let schema = proptest::collection::vec((keyword.clone(), inner.clone()), 0..5).prop_map(|members| {
            Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        });
        prop_oneof![schema, proptest::collection::vec(inner, 0..3).prop_map(Value::from)]
    })
}
