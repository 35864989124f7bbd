//! Objects that tests create.

use serde_json::{Value, json};

use crate::harness::Api;

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// Nothing else makes Secrets in a fresh namespace: the right kind for tests that list or watch.
pub(crate) fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque"})
}

pub(crate) fn labelled(mut object: Value, labels: Value) -> Value {
    object["metadata"]["labels"] = labels;
    object
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]}
    })
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]}
            }
        }
    })
}

/// A CustomResourceDefinition of `Widget` in the test's own group, with a small schema and both subresources.
pub(crate) fn widgets(api: &Api) -> Value {
    let group = group(api);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}
                },
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["size"],
                            "properties": {
                                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                                "replicas": {"type": "integer", "default": 1},
                                "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
                                "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 3}
                            }
                        },
                        "status": {
                            "type": "object",
                            "properties": {
                                "replicas": {"type": "integer"},
                                "selector": {"type": "string"},
                                "phase": {"type": "string"}
                            }
                        }
                    }
                }}
            }]
        }
    })
}

/// The API group of the test's own custom resources.
pub(crate) fn group(api: &Api) -> String {
    format!("{}.example.com", api.id)
}

pub(crate) fn widget(api: &Api, name: &str) -> Value {
    json!({
        "apiVersion": format!("{}/v1", group(api)), "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 3}
    })
}

/// Where the widgets of the test's namespace are, once its definition is served.
pub(crate) async fn widgets_path(api: &Api) -> String {
    let ns = api.namespace().await;
    api.crd(widgets(api)).await;
    format!("/apis/{}/v1/namespaces/{ns}/widgets", group(api))
}
