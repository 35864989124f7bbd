use serde_json::{Value, json};

use super::check_structural;

fn errors(schema: Value) -> Vec<String> {
    check_structural(&schema, "p").iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_schema_passes() {
    let schema = json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}},
        "spec": {"type": "object", "default": {"n": 1}, "properties": {
            "n": {"type": "integer"},
            "any": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
    }});
    assert_eq!(errors(schema), [] as [&str; 0]);
}

#[test]
fn types_are_needed_everywhere() {
    assert_eq!(errors(json!({})), ["p.type: Required value: must not be empty at the root"]);
    assert_eq!(
        errors(json!({"type": "string"})),
        ["p.type: Invalid value: \"string\": must be object at the root"]
    );
    let schema = json!({"type": "object", "properties": {"a": {}, "b": {"type": "array", "items": {}}, "c": {"type": "array"}}});
    assert_eq!(
        errors(schema),
        [
            "p.properties[a].type: Required value: must not be empty for specified object fields",
            "p.properties[b].items.type: Required value: must not be empty for specified array items",
            "p.properties[c].items: Required value: must be specified",
        ]
    );
}

#[test]
fn junctors_only_restrict() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "object"}}, "anyOf": [
        {"type": "object", "properties": {"b": {"minimum": 1}}},
    ]});
    assert_eq!(
        errors(schema),
        [
            "p.anyOf[0].type: Forbidden: must be empty to be structural",
            "p.properties[b]: Required value: because it is defined in p.anyOf[0].properties[b]",
        ]
    );
}

#[test]
fn defaults_must_be_allowed_values() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {"x": 1, "n": "a"}, "properties": {
        "n": {"type": "integer"},
        "m": {"type": "integer", "default": 11, "maximum": 10},
    }}}});
    assert_eq!(
        errors(schema),
        [
            "p.properties[spec].default: Invalid value: {\"n\":\"a\",\"x\":1}: must not have unknown fields",
            "p.properties[spec].default.n: Invalid value: \"string\": n in body must be of type integer: \"string\"",
            "p.properties[spec].properties[m].default: Invalid value: 11:  in body should be less than or equal to 10",
        ]
    );
}

/// Schemas, and the causes of a real API server's rejections.
#[test]
fn schemas_are_judged_as_a_real_server_judges_them() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    assert!(cases.len() > 90);
    for case in cases {
        let found = check_structural(&case["schema"], "spec.validation.openAPIV3Schema");
        let mut found: Vec<[String; 3]> = found
            .iter()
            .map(|error| [error.kind.reason().to_owned(), error.field.clone(), error.body()])
            .collect();
        found.sort();
        assert_eq!(json!(found), case["errors"], "{}", case["schema"]);
    }
}

#[test]
fn a_schema_has_a_limited_number_of_large_patterns() {
    let schema = |count: usize, pattern: &str| {
        let properties: serde_json::Map<String, Value> = (0..count)
            .map(|n| (format!("p{n:04}"), json!({"type": "string", "pattern": format!("{pattern}{n}")})))
            .collect();
        json!({"type": "object", "properties": properties})
    };
    assert!(check_structural(&schema(60, "^[a-z0-9]{1,63}"), "s").is_empty());
    let errors = check_structural(&schema(201, r"\pL{8}"), "s");
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].field, "s.properties[p0200].pattern");
    assert!(
        errors[0].detail.ends_with("more than 200 patterns that are large when compiled"),
        "{}",
        errors[0]
    );
}
