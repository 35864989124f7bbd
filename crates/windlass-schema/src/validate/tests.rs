use serde_json::{Value, json};

use crate::{FieldError, Schema, default, prune, validate, validate_update};

fn rows(errors: &[FieldError]) -> Vec<[String; 3]> {
    let mut rows: Vec<[String; 3]> = errors
        .iter()
        .map(|error| [error.kind.reason().to_owned(), error.field.clone(), error.body()])
        .collect();
    rows.sort();
    rows
}

fn expected(case: &Value, name: &str) -> Value {
    case.get(name).cloned().unwrap_or_else(|| json!([]))
}

/// Objects that a real API server was given, its causes, the fields that it did not know, and its answer.
#[test]
fn objects_are_judged_as_a_real_server_judges_them() {
    let table: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    let schema = Schema::compile(&table["schema"]);
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() > 140);
    for case in cases {
        let mut object = case["object"].clone();
        default(&schema, &mut object);
        let unknown = prune(&schema, &mut object);
        assert_eq!(json!(unknown), expected(case, "unknown"), "{}", case["object"]);
        let errors = validate(&schema, &object);
        assert_eq!(json!(rows(&errors)), expected(case, "errors"), "{}", case["object"]);
        if let Some(result) = case.get("result") {
            assert_eq!(&object, result);
        }
    }
}

#[test]
fn what_was_wrong_and_has_not_changed_is_let_pass() {
    let schema = Schema::compile(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string", "maxLength": 1},
            "b": {"type": "string", "maxLength": 1},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        }}}}),
    );
    let old = json!({"spec": {"a": "long", "list": [{"k": "x", "v": "bad"}], "set": ["a", "a"]}});
    let new = json!({"spec": {
        "a": "long", "b": "long", "list": [{"k": "y", "v": 1}, {"k": "x", "v": "bad"}], "set": ["a", "a"],
    }});
    let errors = validate_update(&schema, &new, &old);
    assert_eq!(rows(&errors), [["FieldValueTooLong", "spec.b", "Too long: may not be more than 1 byte"]]);
}
