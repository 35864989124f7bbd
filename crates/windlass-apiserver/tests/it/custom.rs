//! Custom resources: defined, served, defaulted, pruned, validated, cleaned up.

use serde_json::{Value, json};

use crate::harness::{Client, MERGE, client};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/a.example/v1/namespaces/default/widgets";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.a.example"},
        "spec": {
            "group": "a.example",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {
                                "replicas": {"type": "integer", "minimum": 0, "default": 1},
                                "size": {"type": "string"},
                            },
                        },
                        "status": {
                            "type": "object",
                            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
                        },
                    },
                }},
            }],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "a.example/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

async fn defined() -> Client {
    let client = client();
    client.post(DEFINITIONS, &definition()).await.expect(201);
    client
}

#[tokio::test]
async fn a_definition_is_served_at_once() {
    let client = client();
    client.get(WIDGETS).await.expect(404);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    let stored = client.get(&format!("{DEFINITIONS}/widgets.a.example")).await.expect(200);
    let conditions: Vec<_> = stored.body["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| (condition["type"].as_str().unwrap(), condition["status"].as_str().unwrap()))
        .collect();
    assert_eq!(conditions, [("NamesAccepted", "True"), ("Established", "True")]);
    let list = client.get(WIDGETS).await.expect(200);
    assert_eq!(list.body["kind"], "WidgetList");
    let discovery = client.get("/apis/a.example/v1").await.expect(200);
    assert_eq!(discovery.body["resources"][0]["shortNames"], json!(["wd"]));
}

#[tokio::test]
async fn instances_are_defaulted_pruned_and_validated() {
    let client = defined().await;
    let created = client.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    assert_eq!(created.body["spec"], json!({"replicas": 1}));
    assert_eq!(created.headers["warning"], "299 - \"unknown field \\\"spec.color\\\"\"");
    assert_eq!(created.body["metadata"]["generation"], 1);
    let invalid = client.post(WIDGETS, &widget("b", json!({"replicas": -1}))).await.expect(422);
    assert_eq!(
        invalid.message(),
        "Widget.a.example \"b\" is invalid: [spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, .spec.replicas: Invalid value: -1: should be a non-negative integer]"
    );
    let path = &format!("{WIDGETS}?fieldValidation=Strict");
    let strict = client.post(path, &widget("c", json!({"x": 1}))).await.expect(400);
    assert!(strict.message().ends_with("strict decoding error: unknown field \"spec.x\""), "{}", strict.text);
}

#[tokio::test]
async fn status_and_spec_are_written_apart() {
    let client = defined().await;
    let path = &format!("{WIDGETS}/a");
    let status = &format!("{WIDGETS}/a/status");
    let mut object = widget("a", json!({}));
    object["status"] = json!({"replicas": 9});
    let created = client.post(WIDGETS, &object).await.expect(201);
    assert_eq!(created.body["status"], Value::Null);
    let merged = json!({"spec": {"replicas": 5}, "status": {"replicas": 2}});
    let written = client.patch(status, MERGE, &merged).await.expect(200);
    assert_eq!(written.body["spec"]["replicas"], 1);
    assert_eq!(written.body["status"]["replicas"], 2);
    assert_eq!(written.body["metadata"]["generation"], 1);
    let written = client.patch(path, MERGE, &merged).await.expect(200);
    assert_eq!(written.body["spec"]["replicas"], 5);
    assert_eq!(written.body["metadata"]["generation"], 2);
    let mut stale = written.body.clone();
    stale["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let refused = client.put(path, &stale).await.expect(422);
    assert!(
        refused
            .message()
            .contains("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn scale_reads_and_writes_by_path() {
    let client = defined().await;
    client.post(WIDGETS, &widget("a", json!({"replicas": 3}))).await.expect(201);
    let path = &format!("{WIDGETS}/a/scale");
    let mut scale = client.get(path).await.expect(200).body;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(3)));
    scale["spec"]["replicas"] = json!(4);
    client.put(path, &scale).await.expect(200);
    let scaled = client.patch(path, MERGE, &json!({"spec": {"replicas": 5}})).await.expect(200);
    assert_eq!(scaled.body["spec"]["replicas"], 5);
    let widget = client.get(&format!("{WIDGETS}/a")).await.expect(200);
    assert_eq!(widget.body["spec"]["replicas"], 5);
    assert_eq!(widget.body["metadata"]["generation"], 3);
    client.put(path, &scale).await.expect(409);
}

#[tokio::test]
async fn a_deleted_definition_takes_its_instances_along() {
    let client = defined().await;
    let path = &format!("{DEFINITIONS}/widgets.a.example");
    client.post(WIDGETS, &widget("a", json!({}))).await.expect(201);
    let mut held = widget("b", json!({}));
    held["metadata"]["finalizers"] = json!(["a.example/f"]);
    client.post(WIDGETS, &held).await.expect(201);
    client.delete(path).await.expect(200);
    client.get(&format!("{WIDGETS}/a")).await.expect(404);
    client.post(WIDGETS, &widget("c", json!({}))).await.expect(403);
    client.get(path).await.expect(200);
    client
        .patch(&format!("{WIDGETS}/b"), MERGE, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    client.get(path).await.expect(404);
    client.get(WIDGETS).await.expect(404);
}

#[tokio::test]
async fn what_is_not_done_is_said() {
    let client = client();
    let mut ruled = definition();
    ruled["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.replicas < 5"}]);
    let warned = client.post(&format!("{DEFINITIONS}?dryRun=All"), &ruled).await.expect(201);
    assert!(
        warned.headers["warning"].to_str().unwrap().contains("x-kubernetes-validations are not evaluated")
    );
    let mut converted = definition();
    let mut second = converted["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    converted["spec"]["versions"].as_array_mut().unwrap().push(second);
    converted["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://localhost:1/"}},
    });
    client.post(DEFINITIONS, &converted).await.expect(201);
    let other_version = &WIDGETS.replace("/v1/", "/v2/");
    client.get(other_version).await.expect(200);
    let widget = json!({"apiVersion": "a.example/v1", "kind": "Widget", "metadata": {"name": "w"}});
    client.post(WIDGETS, &widget).await.expect(201);
    client.get(WIDGETS).await.expect(200);
    let refused = client.get(other_version).await.expect(500);
    assert!(refused.message().contains("does not call conversion webhooks yet"), "{}", refused.text);
}
