//! Rules on objects with a schema.

use serde_json::json;
use windlass_cel::{DefinitionProblem, Rules, check_definition};

use super::Rule;

#[track_caller]
fn check(schema: &serde_json::Value, object: &serde_json::Value, rules: &[(&str, &str)]) {
    for (rule, expected) in rules {
        let (result, _) = Rule::new(schema, rule).check(object);
        let found = result.unwrap_or_else(|error| format!("error: {error}"));
        assert_eq!(found, *expected, "{rule}");
    }
}

#[test]
fn fields_have_the_types_of_the_schema() {
    let schema = json!({"type": "object", "properties": {
        "count": {"type": "integer"}, "ratio": {"type": "number"}, "name": {"type": "string"},
        "on": {"type": "boolean"}, "size": {"x-kubernetes-int-or-string": true},
        "wait": {"type": "string", "format": "duration"}, "at": {"type": "string", "format": "date-time"},
        "data": {"type": "string", "format": "byte"},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    let object = json!({
        "count": 3, "ratio": 2, "name": "n", "on": true, "size": "50%", "wait": "1m30s",
        "at": "2026-01-02T03:04:05Z", "data": "aGk=", "tags": {"a": "b"},
    });
    check(
        &schema,
        &object,
        &[
            ("self.count + 1 == 4 && self.ratio == 2.0 && self.on", "true"),
            ("type(self.size) == string ? self.size == '50%' : self.size == 5", "true"),
            ("self.wait > duration('1m') && self.at.getFullYear() == 2026", "true"),
            ("self.data == b'hi' && self.tags['a'] == 'b' && 'a' in self.tags", "true"),
            ("has(self.name) && !has(self.tags.x)", "true"),
            ("self.tags.all(k, k == 'a') && self.tags.size() == 1", "true"),
            ("self.tags['missing'] == 'x'", "error: no such key: missing"),
        ],
    );
}

#[test]
fn names_are_escaped() {
    let schema = json!({"type": "object", "properties": {
        "a-b": {"type": "integer"}, "c.d/e": {"type": "integer"}, "namespace": {"type": "string"},
        "__x": {"type": "integer"},
    }});
    let object = json!({"a-b": 1, "c.d/e": 2, "namespace": "ns", "__x": 3});
    check(
        &schema,
        &object,
        &[
            ("self.a__dash__b == 1 && self.c__dot__d__slash__e == 2", "true"),
            ("self.__namespace__ == 'ns' && self.namespace == 'ns' && self.__underscores__x == 3", "true"),
            ("has(self.a__dash__b)", "true"),
        ],
    );
}

#[test]
fn sets_and_maps_ignore_the_order() {
    let schema = json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "other": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
    }});
    let object =
        json!({"set": ["a", "b"], "other": ["b", "a"], "map": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]});
    check(
        &schema,
        &object,
        &[
            ("self.set == self.other", "true"),
            ("self.set + ['b', 'c'] == ['c', 'b', 'a']", "true"),
            ("self.map == [self.map[1], self.map[0]]", "true"),
            ("self.map.exists_one(e, e.k == 'x' && e.v == 1)", "true"),
        ],
    );
}

#[test]
fn data_of_the_wrong_type_is_an_error() {
    let schema = json!({"type": "object", "properties": {
        "count": {"type": "integer"}, "maybe": {"type": "string", "nullable": true}, "list": {"type": "array",
            "items": {"type": "integer"}},
    }});
    let object = json!({"count": "x", "maybe": null, "list": [1, "x"]});
    check(
        &schema,
        &object,
        &[
            ("self.count == 1", "error: invalid data, expected int, got string"),
            ("has(self.maybe)", "false"),
            ("self.list.exists(x, x == 1)", "true"),
            ("self.list.all(x, x == 1)", "error: invalid data, expected int, got string"),
        ],
    );
}

#[test]
fn a_resource_has_only_its_names() {
    let schema = json!({"type": "object", "properties": {"metadata": {"type": "object"}, "spec": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }}});
    let schema = windlass_cel::Schema::compile(&schema, true);
    let known = windlass_cel::Type::of_schema(&schema, "selfType");
    let env = windlass_cel::Env::kubernetes().with_variable("self", known);
    assert!(env.compile("self.metadata.name == 'a' && self.kind == 'K'").is_ok());
    let issues = env.compile("self.metadata.labels == {}").err().map(|issues| issues.to_string());
    assert!(issues.is_some_and(|text| text.contains("undefined field 'labels'")));
}

#[test]
fn rules_of_definitions_have_types_paths_and_limited_costs() {
    let items = json!({"type": "object", "properties": {"name": {"type": "string"}}, "x-kubernetes-validations": [
        {"rule": "self == oldSelf"}, {"rule": "true", "fieldPath": ".name"}, {"rule": "self.name.matches('a*')"},
    ]});
    let schema = json!({"type": "object", "properties": {
        "atomic": {"type": "array", "items": items},
        "free": {"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": "true"}]},
        "path": {"type": "object", "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".x"}]},
    }});
    let found = check_definition(&schema, "schema");
    let lines: Vec<String> = found.iter().map(|issue| format!("{}: {}", issue.path, issue.detail)).collect();
    let starts = [
        "schema.properties[atomic].items.x-kubernetes-validations[0].rule: oldSelf cannot be used on the \
            uncorrelatable portion of the schema within schema.properties[atomic]",
        "schema.properties[atomic].items.x-kubernetes-validations[2].rule: estimated rule cost exceeds budget",
        "schema.properties[free].x-kubernetes-validations: internal error",
        "schema.properties[path].x-kubernetes-validations[0].fieldPath: must be a valid path",
        "schema.properties[atomic].items.x-kubernetes-validations[0].rule: contributed to estimated rule cost total",
        "schema: x-kubernetes-validations estimated rule cost total",
    ];
    for start in starts {
        assert!(lines.iter().any(|line| line.starts_with(start)), "{start}\n{}", lines.join("\n"));
    }
    assert!(
        found.iter().all(|issue| issue.problem != DefinitionProblem::InvalidRule(json!({"rule": "true"})))
    );
}

#[test]
fn violations_of_unchanged_values_do_not_refuse_an_update() {
    let port =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {
        "keyed": {
            "type": "array", "items": port, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-validations": [{"rule": "self.all(p, p.port < 5)"}],
        },
        "atomic": {"type": "array", "items": port, "x-kubernetes-validations": [{"rule": "self.all(p, p.port < 5)"}]},
        "free": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{"rule": "self == {}"}],
        },
    }});
    let rules = Rules::compile(&schema).expect("rules");
    let update = |name: &str, old: serde_json::Value, new: serde_json::Value| {
        let found = rules.validate(&json!({ name: new }), Some(&json!({ name: old })));
        (found.errors.len(), found.unchanged.len())
    };
    let (a, b, c) =
        (json!({"name": "a", "port": 7}), json!({"name": "b", "port": 8}), json!({"name": "b", "port": 9}));
    assert_eq!(update("keyed", json!([a, b]), json!([b, a])), (0, 1), "another order");
    assert_eq!(update("keyed", json!([a, b]), json!([a, a])), (0, 1), "each item is an old item");
    assert_eq!(update("keyed", json!([a, b]), json!([a, c])), (1, 0), "another port");
    assert_eq!(update("keyed", json!([a, b]), json!([a])), (1, 0), "one item less");
    assert_eq!(update("atomic", json!([a, b]), json!([a, b])), (0, 1), "an equal list");
    assert_eq!(
        update("atomic", json!([a, b]), json!([b, a])),
        (1, 0),
        "another order of a list without keys"
    );
    assert_eq!(
        update("free", json!({"x": 1}), json!({"x": 1})),
        (1, 0),
        "a field that the schema does not know"
    );
}
