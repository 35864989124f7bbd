//! `dryRun=All`: everything but the write.

use expect_test::expect;
use serde_json::json;

use crate::fixtures::{config_map, widget, widgets_path};
use crate::harness::{Api, MERGE_PATCH};

#[tokio::test]
async fn nothing_is_written() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let tried = api.post(&format!("{path}?dryRun=All"), config_map("a")).await.is(201);
    assert!(tried.at("/metadata/uid").is_string());
    api.get(&format!("{path}/a")).await.is(404);
    let created = api.post(&path, config_map("a")).await.is(201);
    let mut body = created.json();
    body["data"]["k"] = json!("w");
    let tried = api.put(&format!("{path}/a?dryRun=All"), body).await.is(200);
    assert_eq!(tried.at("/data/k"), "w");
    let tried =
        api.patch(&format!("{path}/a?dryRun=All"), MERGE_PATCH, json!({"data": {"k": "p"}})).await.is(200);
    assert_eq!(tried.at("/data/k"), "p");
    api.delete(&format!("{path}/a?dryRun=All")).await.is(200);
    api.delete_with(&format!("{path}/a"), json!({"dryRun": ["All"]})).await.is(200);
    assert_eq!(api.get(&format!("{path}/a")).await.json(), created.json());
}

#[tokio::test]
async fn a_dry_create_has_no_resource_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/configmaps?dryRun=All"), config_map("a")).await.shows(
        expect![[r#"
            201
            {
              "apiVersion": "v1",
              "data": {
                "k": "v"
              },
              "kind": "ConfigMap",
              "metadata": {
                "creationTimestamp": "TIME",
                "managedFields": [
                  "api-test Update v1: {'f:data':{'.':{},'f:k':{}}}"
                ],
                "name": "a",
                "namespace": "ns-ID",
                "uid": "UID"
              }
            }"#]],
    );
}

#[tokio::test]
async fn what_would_fail_fails() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    api.post(&format!("{path}?dryRun=All"), widget(&api, "a")).await.is(409);
    let mut body = widget(&api, "b");
    body["spec"]["size"] = json!(0);
    api.post(&format!("{path}?dryRun=All"), body).await.is(422);
    api.patch(&format!("{path}/a?dryRun=All"), MERGE_PATCH, json!({"spec": {"size": 99}})).await.is(422);
}

#[tokio::test]
async fn a_collection_is_deleted_in_thought_only() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let tried = api.delete(&format!("{path}?dryRun=All")).await.is(200);
    assert_eq!(tried.names(), ["a"]);
    assert_eq!(api.get(&path).await.names(), ["a"]);
}

#[tokio::test]
async fn only_all_is_known() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&format!("{path}?dryRun=Some"), config_map("a")).await.shows(expect![[r#"
        422 Invalid: CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"
        group="meta.k8s.io" kind="CreateOptions"
        - FieldValueNotSupported dryRun: Unsupported value: ["Some"]: supported values: "All""#]]);
    api.post(&path, config_map("a")).await.is(201);
    api.put(&format!("{path}/a?dryRun=Some"), config_map("a")).await.shows(expect![[r#"
        422 Invalid: UpdateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"
        group="meta.k8s.io" kind="UpdateOptions"
        - FieldValueNotSupported dryRun: Unsupported value: ["Some"]: supported values: "All""#]]);
    api.patch(&format!("{path}/a?dryRun=Some"), MERGE_PATCH, json!({})).await.shows(expect![[r#"
        422 Invalid: PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"
        group="meta.k8s.io" kind="PatchOptions"
        - FieldValueNotSupported dryRun: Unsupported value: ["Some"]: supported values: "All""#]]);
    api.delete(&format!("{path}/a?dryRun=Some")).await.shows(expect![[r#"
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueNotSupported dryRun: Unsupported value: ["Some"]: supported values: "All""#]]);
}
