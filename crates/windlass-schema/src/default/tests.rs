use serde_json::json;

use crate::{Schema, default};

fn schema() -> Schema {
    Schema::compile(&json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "default": {},
                "properties": {
                    "replicas": {"type": "integer", "default": 1},
                    "note": {"type": "string"},
                    "gone": {"type": "string", "nullable": true},
                    "ports": {"type": "array", "items": {
                        "type": "object",
                        "properties": {"protocol": {"type": "string", "default": "TCP"}},
                    }},
                    "labels": {"type": "object", "additionalProperties": {
                        "type": "object", "properties": {"x": {"type": "integer", "default": 7}},
                    }},
                },
            },
        },
    }))
}

#[test]
fn defaults_are_filled_in_through_defaults() {
    let mut object = json!({});
    default(&schema(), &mut object);
    assert_eq!(object, json!({"spec": {"replicas": 1}}));
}

#[test]
fn lists_and_maps_are_entered() {
    let mut object = json!({"spec": {"ports": [{}, {"protocol": "UDP"}], "labels": {"a": {}}}});
    default(&schema(), &mut object);
    assert_eq!(
        object,
        json!({"spec": {
            "replicas": 1,
            "ports": [{"protocol": "TCP"}, {"protocol": "UDP"}],
            "labels": {"a": {"x": 7}},
        }})
    );
}

#[test]
fn null_is_dropped_or_defaulted_unless_it_is_a_value() {
    let mut object = json!({"spec": {"replicas": null, "note": null, "gone": null}});
    default(&schema(), &mut object);
    assert_eq!(object, json!({"spec": {"replicas": 1, "gone": null}}));
}
