//! The scale subresource.

use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{deployment, group, widget, widgets};
use crate::harness::{Api, MERGE_PATCH};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test]
async fn a_scale_has_columns_of_its_own() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    let table =
        api.request(Method::GET, &format!("{path}/a/scale")).accept(TABLE).send().await.is(200).json();
    let names = table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].clone());
    assert_eq!(names.collect::<Value>(), json!(["Name", "Desired", "Available", "Age"]));
    assert_eq!(table.pointer("/rows/0/cells/1"), Some(&json!(0)));
}

#[tokio::test]
async fn a_scale_of_zero_has_no_manager() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    let scale = format!("{path}/a/scale?fieldManager=scaler");
    api.patch(&scale, MERGE_PATCH, json!({"spec": {"replicas": 0}})).await.is(200);
    let managers = api.get(&format!("{path}/a")).await.at("/metadata/managedFields");
    assert!(!managers.to_string().contains("scaler"), "{managers}");
}

#[tokio::test]
async fn the_first_field_of_a_spec_may_be_its_replicas() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut definition = widgets(&api);
    let version = &mut definition["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"type": "object", "properties":
        {"replicas": {"type": "integer"}, "count": {"type": "integer", "default": 1}}});
    version["subresources"] = json!({"scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"
    }});
    api.crd(definition).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    let mut body = widget(&api, "x");
    body.as_object_mut().unwrap().remove("spec");
    api.post(&path, body).await.is(201);
    let one = format!("{path}/x");
    api.patch(&format!("{one}/scale"), MERGE_PATCH, json!({"spec": {"replicas": 0}})).await.is(200);
    let scaled = api.get(&one).await.is(200);
    assert_eq!(scaled.at("/spec"), json!({"count": 1, "replicas": 0}));
    let patched = api.patch(&one, MERGE_PATCH, json!({"spec": {"other": null}})).await.is(200);
    assert_eq!(patched.at("/metadata/managedFields"), scaled.at("/metadata/managedFields"));
}

#[tokio::test]
async fn the_scale_of_a_kind_without_replicas_changes_nothing_that_shows() {
    let api = Api::start();
    let mut definition = widgets(&api);
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    definition.pointer_mut(schema).unwrap().as_object_mut().unwrap().remove("replicas");
    let ns = api.namespace().await;
    api.crd(definition).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    api.post(&path, widget(&api, "a")).await.is(201);
    let scale =
        api.patch(&format!("{path}/a/scale"), MERGE_PATCH, json!({"spec": {"replicas": 3}})).await.is(200);
    assert_eq!(scale.at("/spec"), json!({}));
    assert_eq!(api.get(&format!("{path}/a")).await.at("/spec/replicas"), Value::Null);
}

#[tokio::test]
async fn the_replicas_of_a_custom_resource_are_those_of_a_scale() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.crd(widgets(&api)).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    let mut body = widget(&api, "x");
    body["spec"]["replicas"] = json!(i64::from(i32::MAX) + 1);
    let refused = api.post(&path, body).await.is(422);
    assert!(refused.text_at("/message").ends_with("should be less than or equal to 2147483647"));
}

#[tokio::test]
async fn a_scale_is_that_of_the_object_in_the_path() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    let scale = format!("{path}/a/scale");
    let patch = async |metadata: Value| {
        api.patch(&scale, MERGE_PATCH, json!({"metadata": metadata, "spec": {"replicas": 2}})).await
    };
    let put = async |mut metadata: Value| {
        metadata["name"] = json!("a");
        let body = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": {"replicas": 2}});
        api.put(&format!("{scale}?dryRun=All"), body).await
    };
    let undeterminable = "the name of the object (a based on URL) was undeterminable: name must be provided";
    let namespace = "the namespace of the provided object does not match the namespace sent on the request";
    for (reply, code, message) in [
        (
            patch(json!({"name": "x"})).await,
            400,
            "the name of the object (x) does not match the name on the URL (a)",
        ),
        (patch(json!({"name": null})).await, 400, undeterminable),
        (patch(json!({"namespace": "other"})).await, 400, namespace),
        (put(json!({"namespace": "other"})).await, 400, namespace),
        (
            patch(json!({"uid": "x"})).await,
            409,
            "Operation cannot be fulfilled on deployments/scale.apps \"a\": Precondition failed: UID in precondition: x, UID in object meta: ",
        ),
        (
            put(json!({"uid": "x"})).await,
            409,
            "Operation cannot be fulfilled on deployments.apps \"a\": StorageError: invalid object, Code: 4, Key: /deployments/",
        ),
    ] {
        let found = reply.is(code).text_at("/message");
        assert!(found.starts_with(message), "{found}");
    }
    let uid = api.get(&scale).await.at("/metadata/uid");
    put(json!({"uid": uid, "namespace": ns})).await.is(200);
    patch(json!({"uid": uid})).await.is(200);
}
