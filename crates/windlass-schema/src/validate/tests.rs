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

/// Objects, and what a real API server returned: causes, unknown fields, and the stored object.
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

/// Updates of an object that was created before its schema became stricter, and the causes of a real API server.
#[test]
fn unchanged_invalid_values_are_accepted_on_update() {
    let table: Value = serde_json::from_str(include_str!("updates.json")).unwrap();
    let schema = Schema::compile(&table["schema"]);
    let object = |spec: &Value| {
        let mut object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec});
        default(&schema, &mut object);
        prune(&schema, &mut object);
        object
    };
    for case in table["cases"].as_array().unwrap() {
        let errors = validate_update(&schema, &object(&case["spec"]), &object(&table["old"]));
        assert_eq!(json!(rows(&errors)), case["errors"], "{}", case["spec"]);
    }
}
