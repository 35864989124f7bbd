use serde_json::{Value, json};

use crate::{Schema, prune};

fn pruned(schema: &Value, mut object: Value) -> (Value, Vec<String>) {
    let unknown = prune(&Schema::compile(schema), &mut object);
    (object, unknown)
}

#[test]
fn unknown_members_are_removed_and_returned_in_order() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": {"type": "string"}}}},
        }},
    }});
    let object = json!({
        "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"},
        "spec": {"z": 1, "list": [{"a": "x"}, {"c": 1}], "map": {"k": {"b": "y", "d": 1}}},
        "extra": {},
    });
    let (object, unknown) = pruned(&schema, object);
    assert_eq!(
        object,
        json!({
            "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"},
            "spec": {"list": [{"a": "x"}, {}], "map": {"k": {"b": "y"}}},
        })
    );
    assert_eq!(unknown, ["extra", "spec.list[1].c", "spec.map.k.d", "spec.z"]);
}

#[test]
fn preserved_members_stay_but_known_ones_below_are_pruned() {
    let schema = json!({"type": "object", "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
    }});
    let object = json!({"spec": {"free": {"x": 1}, "known": {"a": "1", "b": 2}}});
    let (object, unknown) = pruned(&schema, object);
    assert_eq!(object, json!({"spec": {"free": {"x": 1}, "known": {"a": "1"}}}));
    assert_eq!(unknown, ["spec.known.b"]);
}

#[test]
fn additional_properties_true_keeps_names_and_drops_what_is_below() {
    let schema =
        json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": true}}});
    let (object, _) = pruned(&schema, json!({"m": {"a": 1, "b": {"c": 2}}}));
    assert_eq!(object, json!({"m": {"a": 1, "b": {}}}));
}

#[test]
fn embedded_resources_keep_their_metadata() {
    let schema = json!({"type": "object", "properties": {
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }});
    let object = json!({"template": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": {"x": 1}, "y": 2}});
    let (object, unknown) = pruned(&schema, object);
    assert_eq!(
        object,
        json!({"template": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": {}}})
    );
    assert_eq!(unknown, ["template.spec.x", "template.y"]);
}
