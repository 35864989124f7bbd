use serde_json::{Value, json};

use super::{Steps, check_in_steps};
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

/// Objects, and the results of a real API server: causes, unknown fields, and the stored object.
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

/// Updates of an object that was created before the schema became stricter, and the causes of a real API
/// server.
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

/// A schema of objects whose `list` has elements with a key `k` and a value `v` of at most 5.
fn map_list() -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {"list": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {
            "k": {"type": "integer"},
            "v": {"type": "integer", "maximum": 5},
        }},
    }}}))
}

#[test]
fn elements_are_compared_with_the_old_ones_of_the_same_key() {
    let errors = |old: Value, new: Value| {
        let errors = validate_update(&map_list(), &json!({"list": new}), &json!({"list": old}));
        errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
    };
    let old = || json!([{"k": 1, "v": 7}, {"k": 2, "v": 8}, {"v": 9}]);
    assert!(errors(old(), json!([{"k": 2, "v": 8}, {"k": 1, "v": 7}])).is_empty(), "moved elements");
    assert_eq!(errors(old(), json!([{"k": 2, "v": 7}])), ["list[0].v"]);
    assert_eq!(errors(old(), json!([{"v": 9}])), ["list[0].v"], "an element without its key is new");
}

#[test]
fn long_lists_are_checked_in_linear_time() {
    let elements = |order: &mut dyn Iterator<Item = usize>| -> Value {
        let elements: Vec<Value> = order.map(|k| json!({"k": k, "v": 9})).collect();
        json!({ "list": elements })
    };
    let old = elements(&mut (0..100_000));
    let new = elements(&mut (1..100_001).rev());
    let started = std::time::Instant::now();
    let errors = validate_update(&map_list(), &new, &old);
    let taken = started.elapsed();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].field, "list[0].v");
    assert!(taken.as_secs() < 20, "comparing each element with each old one takes minutes: {taken:?}");
}

#[test]
fn errors_are_limited_in_number_and_size() {
    let elements = vec![json!({"k": "x", "v": 9}); 5_000];
    let errors = validate(&map_list(), &json!({ "list": elements }));
    assert!(errors.len() > 500 && errors.len() < 2_100, "{}", errors.len());
    assert!(errors.iter().any(|error| error.detail == "too many errors; the others are not listed"));

    let schema = Schema::compile(&json!({"type": "object", "additionalProperties": {
        "type": "array", "items": {"type": "string"},
    }}));
    let key = "x".repeat(100_000);
    let errors = validate(&schema, &json!({ key: vec![0; 5_000] }));
    let size: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(size < 4 << 20, "{size} bytes");
}

#[test]
fn a_large_object_with_a_large_schema_is_refused() {
    let branches: Vec<Value> = (0..1000).map(|n| json!({"required": [format!("f{n}")]})).collect();
    let schema = Schema::compile(&json!({"type": "object", "properties": {"list": {
        "type": "array",
        "items": {"type": "object", "anyOf": branches},
    }}}));
    let large = json!({"list": vec![json!({"f999": 1}); 10_000]});
    let mut steps = Steps { values: 50_000, ..Steps::default() };
    let errors = check_in_steps(schema.root(), &large, None, &mut steps);
    let detail = "the object is too large to be checked with such a large schema";
    assert!(errors.iter().any(|error| error.detail == detail), "{errors:?}");
    assert!(validate(&schema, &json!({"list": vec![json!({"f999": 1}); 10]})).is_empty());
}

#[test]
fn errors_that_are_not_reported_do_not_count() {
    let schema = Schema::compile(&json!({"type": "object", "properties": {"list": {
        "type": "array",
        "items": {
            "x-kubernetes-preserve-unknown-fields": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "not": {"type": "boolean"},
        },
    }}}));
    let mut list = vec![json!("x"); 10_000];
    list.push(json!(true));
    let errors = validate(&schema, &json!({ "list": list }));
    assert!(
        errors.iter().any(|error| error.detail.starts_with("\"list[10000]\" must validate")),
        "{errors:?}"
    );
    let old = json!({"list": vec![true; 10_000]});
    assert!(validate_update(&schema, &old, &old).is_empty());
}

#[test]
fn the_errors_of_the_best_branch_are_reported_after_many_other_branches() {
    let mut branches: Vec<Value> = (0..2_000).map(|n| json!({"required": [format!("f{n}")]})).collect();
    branches.push(json!({"properties": {"a": {"type": "integer", "maximum": 1}}}));
    for junctor in ["anyOf", "oneOf"] {
        let schema = Schema::compile(&json!({
            "type": "object", "properties": {"a": {"type": "integer"}}, junctor: branches
        }));
        let errors = validate(&schema, &json!({"a": 2}));
        let details: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
        assert_eq!(details.len(), 2, "{details:?}");
        assert_eq!(details[1], "a in body should be less than or equal to 1");
        assert!(validate(&schema, &json!({"a": 1})).is_empty());
    }
}

#[test]
fn the_first_valid_branch_ends_the_check_of_any_of() {
    let branches: Vec<Value> = (0..1_000).map(|n| json!({"maximum": 10 + n})).collect();
    let item = json!({"type": "integer", "anyOf": branches});
    let schema = Schema::compile(&json!({"type": "array", "items": item}));
    assert_eq!(validate(&schema, &json!(vec![1; 10_000])), []);
}

#[test]
fn nested_junctors_are_not_checked_again_at_each_level() {
    let deep = (0..40).fold(json!({"minimum": 3}), |inner, _| json!({"anyOf": [inner]}));
    let schema = Schema::compile(&json!({"type": "integer", "anyOf": [deep]}));
    let errors = validate(&schema, &json!(2));
    let last = errors.last().map(|error| error.detail.as_str());
    assert_eq!(last, Some(" in body should be greater than or equal to 3"));
}

#[test]
fn a_pattern_that_takes_too_long_ends_the_check() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "(?:(?:x{1,30}){1,30}){1,30}y"}}
    }));
    let errors = validate(&schema, &json!({"a": "x".repeat(1_200_000)}));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].body().contains("too large to be checked"), "{}", errors[0].body());
}

#[test]
fn limits_of_numbers_beyond_64_bits_are_shown_as_floats() {
    let schema = Schema::compile(
        &json!({"type": "object", "properties": {"a": {"type": "number", "maximum": 5_000_011}}}),
    );
    let details =
        |object: Value| validate(&schema, &object).into_iter().map(|error| error.detail).collect::<Vec<_>>();
    assert_eq!(details(json!({"a": u64::MAX})), ["a in body should be less than or equal to 5.000011e+06"]);
    assert_eq!(details(json!({"a": 6_000_000})), ["a in body should be less than or equal to 5000011"]);
}
