use serde_json::json;

use super::*;
use crate::network::PodNetwork;
use crate::store::{Draft, Labels, ObjectAttrs, Retention, Store};

fn definition(schema: &Value) -> Value {
    json!({
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": { "name": "widgets.example.com", "uid": "u" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                        },
                    },
                },
                { "name": "v1alpha1", "served": false, "storage": false },
            ],
        },
        "status": {
            "acceptedNames": { "plural": "widgets", "kind": "Widget" },
            "conditions": [{ "type": "Established", "status": "True" }],
        },
    })
}

fn served(definition: &Value) -> Vec<Arc<Resource>> {
    let layout = Layout { api_version: "apiextensions.k8s.io/v1".into(), schema: 0 };
    let stored = Draft::unversioned(definition, layout, ObjectAttrs::default(), &Labels::default());
    let store = Arc::new(Store::new(1, Retention::default()));
    resources(&Arc::new(stored), definition, &Arc::new(Clients::new(store, PodNetwork::default())))
}

fn fingerprint_of(schema: &Value) -> u64 {
    served(&definition(schema))[0].layout.schema
}

#[test]
fn only_what_is_established_is_served() {
    let mut definition = definition(&json!({ "type": "object" }));
    let resources = served(&definition);
    assert_eq!(resources.len(), 1);
    assert_eq!(resources[0].api_version(), "example.com/v1");
    let subresources: Vec<&str> = resources[0].subresources.iter().map(|sub| sub.name.as_str()).collect();
    assert_eq!(subresources, ["status", "scale"]);
    assert_eq!(resources[0].custom.as_ref().unwrap().scale.as_ref().unwrap().spec_replicas, ".spec.replicas");
    definition["status"] = json!({});
    assert!(served(&definition).is_empty());
}

#[test]
fn the_schema_is_that_of_the_version() {
    let definition = definition(&json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": { "size": { "default": 3 } } } },
    }));
    let mut object = json!({ "spec": { "other": 1 } });
    let unknown = served(&definition)[0].default_and_prune(&mut object);
    assert_eq!(object["spec"], json!({ "size": 3 }));
    assert_eq!(unknown, ["spec.other"]);
}

#[test]
fn objects_are_read_anew_only_when_defaults_or_fields_change() {
    let schema = |property: &Value| {
        json!({
            "type": "object",
            "properties": { "spec": { "type": "object", "properties": { "size": property } } },
        })
    };
    let before = fingerprint_of(&schema(&json!({ "type": "integer" })));
    let described = json!({ "type": "integer", "description": "The size.", "minimum": 3 });
    assert_eq!(before, fingerprint_of(&schema(&described)));
    assert_ne!(before, fingerprint_of(&schema(&json!({ "type": "integer", "default": 3 }))));
    assert_ne!(before, fingerprint_of(&json!({ "type": "object" })));
}
