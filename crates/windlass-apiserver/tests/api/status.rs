//! The subresources `status` and `scale`.

use expect_test::expect;
use serde_json::json;

use crate::fixtures::{deployment, pod, widget, widgets_path};
use crate::harness::{Api, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

#[tokio::test]
async fn a_write_to_status_touches_the_status_only() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = api.post(&path, widget(&api, "a")).await.is(201).json();
    body["spec"]["size"] = json!(9);
    body["metadata"]["labels"] = json!({"l": "v"});
    body["metadata"]["annotations"] = json!({"l": "v"});
    body["status"] = json!({"phase": "Ready", "bogus": 1});
    let written = api.put(&format!("{path}/a/status"), body).await;
    written.shows(expect![[r#"
        200
        Warning: 299 - "unknown field \"status.bogus\""
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update ID.example.com/v1: {'f:spec':{'.':{},'f:colour':{},'f:replicas':{},'f:size':{}}}",
              "api-test Update ID.example.com/v1 status: {'f:status':{'.':{},'f:phase':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "replicas": 1,
            "size": 3
          },
          "status": {
            "phase": "Ready"
          }
        }"#]]);
    assert_eq!(api.get(&format!("{path}/a/status")).await.json(), written.json());
}

#[tokio::test]
async fn a_write_to_the_object_leaves_the_status() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = widget(&api, "a");
    body["status"] = json!({"phase": "Early"});
    let created = api.post(&path, body).await.is(201);
    assert_eq!(created.at("/status"), json!(null), "no status at creation");
    api.patch(&format!("{path}/a/status"), MERGE_PATCH, json!({"status": {"phase": "Ready"}})).await.is(200);
    let mut body = api.get(&format!("{path}/a")).await.json();
    body["status"]["phase"] = json!("Forged");
    let updated = api.put(&format!("{path}/a"), body.clone()).await.is(200);
    assert_eq!(updated.at("/status/phase"), "Ready");
    assert_eq!(
        updated.at("/metadata/resourceVersion"),
        body["metadata"]["resourceVersion"],
        "nothing was written"
    );
    let patched =
        api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"status": {"phase": "Forged"}})).await.is(200);
    assert_eq!(patched.at("/status/phase"), "Ready");
}

#[tokio::test]
async fn a_status_is_validated_and_pruned() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let bad = json!({"status": {"phase": 5, "replicas": "x"}});
    api.patch(&format!("{path}/a/status"), MERGE_PATCH, bad).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid .status.replicas: Invalid value: 0: .status.replicas accessor error: x is of the type string, expected int64
        - FieldValueTypeInvalid status.phase: Invalid value: "integer": phase in body must be of type string: "integer"
        - FieldValueTypeInvalid status.replicas: Invalid value: "string": replicas in body must be of type integer: "string""#]]);
    let none = json!({"status": 5});
    api.patch(&format!("{path}/a/status"), MERGE_PATCH, none).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid .status.replicas: Invalid value: 0: .status.replicas accessor error: 5 is of the type int64, expected map[string]interface{}
        - FieldValueInvalid .status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected map[string]interface{}
        - FieldValueTypeInvalid status: Invalid value: "integer":  in body must be of type object: "integer""#]]);
    let odd = json!({"status": {"bogus": 1, "phase": "Ready"}});
    let patched = api.patch(&format!("{path}/a/status"), MERGE_PATCH, odd).await.is(200);
    assert_eq!(patched.at("/status"), json!({"phase": "Ready"}));
}

#[tokio::test]
async fn a_stale_status_is_a_conflict() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = api.post(&path, widget(&api, "a")).await.is(201).json();
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"spec": {"size": 5}})).await.is(200);
    body["status"] = json!({"phase": "Late"});
    api.put(&format!("{path}/a/status"), body).await.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on widgets.ID.example.com "a": the object has been modified; please apply your changes to the latest version and try again
        group="ID.example.com" kind="widgets" name="a""#]]);
}

#[tokio::test]
async fn built_in_kinds_keep_status_apart_too() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let mut body = pod("a");
    body["status"] = json!({"phase": "Running"});
    let created = api.post(&path, body).await.is(201);
    assert_eq!(created.at("/status/phase"), "Pending");
    let patched = api
        .patch(
            &format!("{path}/a/status"),
            STRATEGIC_PATCH,
            json!({
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
                "spec": {"containers": [{"name": "main", "image": "forged"}]}
            }),
        )
        .await
        .is(200);
    assert_eq!(patched.at("/status/phase"), "Running");
    assert_eq!(patched.at("/spec/containers/0/image"), "nginx");
    let more = json!({"status": {"conditions": [{"type": "Initialized", "status": "True"}]}});
    let patched = api.patch(&format!("{path}/a/status"), STRATEGIC_PATCH, more).await.is(200);
    assert_eq!(patched.at("/status/conditions").as_array().unwrap().len(), 2, "conditions merge by type");
}

#[tokio::test]
async fn a_kind_without_the_subresource_has_none() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, crate::fixtures::config_map("a")).await.is(201);
    api.get(&format!("{path}/a/status"))
        .await
        .shows(expect!["404 NotFound: the server could not find the requested resource"]);
    api.put(&format!("{path}/a/scale"), json!({}))
        .await
        .shows(expect!["404 NotFound: the server could not find the requested resource"]);
}

#[tokio::test]
async fn the_scale_of_a_custom_resource_is_a_view_of_it() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let status = json!({"status": {"replicas": 2, "selector": "app=a"}});
    api.patch(&format!("{path}/a/status"), MERGE_PATCH, status).await.is(200);
    let scale = api.get(&format!("{path}/a/scale")).await;
    scale.shows(expect![[r#"
        200
        {
          "apiVersion": "autoscaling/v1",
          "kind": "Scale",
          "metadata": {
            "creationTimestamp": "TIME",
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "replicas": 1
          },
          "status": {
            "replicas": 2,
            "selector": "app=a"
          }
        }"#]]);
    let mut body = scale.json();
    body["spec"]["replicas"] = json!(4);
    let scaled = api.put(&format!("{path}/a/scale"), body).await.is(200);
    assert_eq!(scaled.at("/spec/replicas"), 4);
    let widget = api.get(&format!("{path}/a")).await;
    assert_eq!(widget.at("/spec/replicas"), 4);
    assert_eq!(widget.at("/metadata/generation"), 2);
    let patched =
        api.patch(&format!("{path}/a/scale"), MERGE_PATCH, json!({"spec": {"replicas": 5}})).await.is(200);
    assert_eq!(patched.at("/spec/replicas"), 5);
    let patch = json!([{"op": "replace", "path": "/spec/replicas", "value": 6}]);
    api.patch(&format!("{path}/a/scale"), JSON_PATCH, patch).await.is(200);
    assert_eq!(api.get(&format!("{path}/a")).await.at("/spec/replicas"), 6);
}

#[tokio::test]
async fn a_scale_is_checked() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = widget(&api, "a");
    body["spec"]["replicas"] = json!(1);
    api.post(&path, body).await.is(201);
    let path = format!("{path}/a/scale");
    api.patch(&path, MERGE_PATCH, json!({"spec": {"replicas": -1}})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid .spec.replicas: Invalid value: -1: should be a non-negative integer"#]]);
    let mut stale = api.get(&path).await.json();
    stale["metadata"]["resourceVersion"] = json!("1");
    stale["spec"]["replicas"] = json!(3);
    api.put(&path, stale).await.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on widgets.ID.example.com "a": the object has been modified; please apply your changes to the latest version and try again
        group="ID.example.com" kind="widgets" name="a""#]]);
}

#[tokio::test]
async fn a_deployment_scales() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    api.get(&format!("{path}/a/scale")).await.shows(expect![[r#"
        200
        {
          "apiVersion": "autoscaling/v1",
          "kind": "Scale",
          "metadata": {
            "creationTimestamp": "TIME",
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {},
          "status": {
            "replicas": 0,
            "selector": "app=a"
          }
        }"#]]);
    let scaled =
        api.patch(&format!("{path}/a/scale"), MERGE_PATCH, json!({"spec": {"replicas": 2}})).await.is(200);
    assert_eq!(scaled.at("/spec/replicas"), 2);
    assert_eq!(api.get(&format!("{path}/a")).await.at("/spec/replicas"), 2);
    api.patch(&format!("{path}/a/scale"), MERGE_PATCH, json!({"spec": {"replicas": -2}}))
        .await
        .shows(expect![[r#"
            422 Invalid: Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -2: must be greater than or equal to 0
            group="autoscaling" kind="Scale" name="a"
            - FieldValueInvalid spec.replicas: Invalid value: -2: must be greater than or equal to 0"#]]);
}

#[tokio::test]
async fn a_write_of_the_status_keeps_the_generation_of_the_template() {
    let api = Api::start();
    let sets = format!("/apis/apps/v1/namespaces/{}/daemonsets", api.namespace().await);
    let template = json!({
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    let mut set = api.post(&sets, json!({"metadata": {"name": "a"}, "spec": spec})).await.is(201).json();
    let annotation = "/metadata/annotations/deprecated.daemonset.template.generation";
    set["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = json!("7");
    let kept = api.put(&format!("{sets}/a/status"), set).await.is(200);
    assert_eq!(kept.at(annotation), "1");
}
