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

fn built_in(group: &str, version: &str, kind: &str, mut object: serde_json::Value) -> serde_json::Value {
    let schema = crate::Catalog::builtin().schema(group, version, kind).unwrap();
    default(&schema, &mut object);
    let once = object.clone();
    default(&schema, &mut object);
    assert_eq!(once, object, "defaulting is idempotent");
    object
}

#[test]
fn built_in_objects_lose_what_go_omits_and_gain_what_it_always_writes() {
    let service = json!({
        "metadata": {"name": "a", "labels": {}, "creationTimestamp": null},
        "spec": {"ports": [{"port": 80, "name": ""}], "selector": null},
    });
    let service = built_in("", "v1", "Service", service);
    assert_eq!(service["metadata"], json!({"name": "a"}));
    assert_eq!(service["spec"]["ports"], json!([{"port": 80, "protocol": "TCP"}]));
    assert_eq!(service["status"], json!({"loadBalancer": {}}));
}

#[test]
fn null_in_a_map_or_a_list_is_the_zero_value() {
    let pod = json!({
        "spec": {
            "nodeSelector": {"a": null},
            "containers": [{"name": "a", "args": ["x", null], "resources": {"limits": {"cpu": null}}}],
        },
    });
    let pod = built_in("", "v1", "Pod", pod);
    assert_eq!(pod["spec"]["nodeSelector"], json!({"a": ""}));
    assert_eq!(pod["spec"]["containers"][0]["args"], json!(["x", ""]));
    assert_eq!(pod["spec"]["containers"][0]["resources"], json!({"limits": {"cpu": "0"}}));
}

#[test]
fn lists_that_go_always_writes_are_null() {
    let role = built_in("rbac.authorization.k8s.io", "v1", "Role", json!({"metadata": {"name": "a"}}));
    assert_eq!(role, json!({"metadata": {"name": "a"}, "rules": null}));
}

#[test]
fn defaults_do_not_take_all_memory() {
    let large = "x".repeat(1 << 20);
    let schema = Schema::compile(&json!({"type": "object", "properties": {"list": {
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "string", "default": large}}},
    }}}));
    let mut object = json!({"list": vec![json!({}); 1000]});
    assert!(!default(&schema, &mut object));
    let filled = object["list"].as_array().unwrap().iter().filter(|item| item.get("a").is_some()).count();
    assert_eq!(filled, 31);
}
