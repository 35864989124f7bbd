//! Namespaces: the initial namespaces, and the end of a namespace.

use expect_test::expect;
use serde_json::{Value, json};

use crate::fixtures::{config_map, widget, widgets_path};
use crate::harness::{Api, MERGE_PATCH};

#[tokio::test]
async fn some_are_there_from_the_start() {
    let api = Api::start();
    let names = api.get("/api/v1/namespaces").await.is(200).names();
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        assert!(names.iter().any(|known| known == name), "{name} is not among {names:?}");
    }
}

#[tokio::test]
async fn the_server_s_own_service_is_there() {
    let api = Api::start();
    let service =
        api.eventually("/api/v1/namespaces/default/services/kubernetes", |reply| reply.code == 200).await;
    assert_eq!(service.at("/spec/ports/0/name"), "https");
    assert_eq!(service.at("/spec/ports/0/port"), 443);
    assert_eq!(service.at("/metadata/labels"), json!({"component": "apiserver", "provider": "kubernetes"}));
}

#[tokio::test]
async fn a_new_one_is_active_and_has_its_name_as_label() {
    let api = Api::start();
    let name = format!("ns-{}", api.id);
    let path = format!("/api/v1/namespaces/{name}");
    let created = api.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
    api.discard(path);
    created.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "kind": "Namespace",
          "metadata": {
            "creationTimestamp": "TIME",
            "labels": {
              "kubernetes.io/metadata.name": "ns-ID"
            },
            "managedFields": [
              "api-test Update v1: {'f:metadata':{'f:labels':{'.':{},'f:kubernetes.io/metadata.name':{}}}}"
            ],
            "name": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "finalizers": [
              "kubernetes"
            ]
          },
          "status": {
            "phase": "Active"
          }
        }"#]]);
}

#[tokio::test]
async fn a_deleted_one_is_terminating_and_takes_nothing_new() {
    let api = Api::start();
    let widgets = widgets_path(&api).await;
    let ns = format!("ns-{}", api.id);
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    // An object that stays: no namespace controller can finish.
    let mut guard = config_map("guard");
    guard["metadata"]["finalizers"] = json!(["example.com/guard"]);
    api.post(&maps, guard).await.is(201);
    let deleted = api.delete(&format!("/api/v1/namespaces/{ns}")).await.is(200);
    assert_eq!(deleted.at("/status/phase"), "Terminating");
    assert!(deleted.at("/metadata/deletionTimestamp").is_string());
    assert_eq!(deleted.at("/spec/finalizers"), json!(["kubernetes"]));
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), Value::Null);
    api.post(&maps, config_map("late")).await.shows(expect![[r#"
        403 Forbidden: configmaps "late" is forbidden: unable to create new content in namespace ns-ID because it is being terminated
        kind="configmaps" name="late"
        - NamespaceTerminating metadata.namespace: namespace ns-ID is being terminated"#]]);
    let bindings = format!("/api/v1/namespaces/{ns}/bindings");
    for (path, object, name) in [
        (&maps, json!({"metadata": {"generateName": "late-"}}), "late-"),
        (&maps, json!({"metadata": {}}), "Unknown"),
        (&bindings, json!({"metadata": {"name": "pod"}, "target": {"name": "n"}}), "pod"),
    ] {
        let refused = api.post(path, object).await.is(403);
        assert_eq!(refused.at("/details/name"), name, "{refused}");
    }
    api.post(&widgets, widget(&api, "late")).await.shows(expect![[r#"
        403 Forbidden: widgets.ID.example.com "late" is forbidden: unable to create new content in namespace ns-ID because it is being terminated
        group="ID.example.com" kind="widgets" name="late"
        - NamespaceTerminating metadata.namespace: namespace ns-ID is being terminated"#]]);
    api.patch(&format!("{maps}/guard"), MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
}

#[tokio::test]
async fn finalize_ends_it() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut guard = config_map("guard");
    guard["metadata"]["finalizers"] = json!(["example.com/guard"]);
    api.post(&maps, guard).await.is(201);
    let path = format!("/api/v1/namespaces/{ns}");
    api.delete(&path).await.is(200);
    api.patch(&format!("{maps}/guard"), MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
    // A controller may be faster than we are.
    let mut namespace = api.get(&path).await;
    if namespace.code == 200 {
        let mut body = namespace.json();
        body["spec"]["finalizers"] = json!([]);
        body["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        namespace = api.put(&format!("{path}/finalize"), body).await;
        assert!(namespace.code == 200 || namespace.code == 404 || namespace.code == 409, "{namespace}");
    }
    api.eventually(&path, |reply| reply.code == 404).await;
}

#[tokio::test]
async fn the_first_ones_stay() {
    let api = Api::start();
    api.delete("/api/v1/namespaces/default?dryRun=All").await.shows(expect![[r#"
        403 Forbidden: namespaces "default" is forbidden: this namespace may not be deleted
        kind="namespaces" name="default""#]]);
    api.delete("/api/v1/namespaces/kube-system?dryRun=All").await.is(403);
    api.delete("/api/v1/namespaces/kube-public?dryRun=All").await.is(403);
}

#[tokio::test]
async fn finalizers_of_the_spec_are_the_finalize_subresource_s() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}");
    let patched = api.patch(&path, MERGE_PATCH, json!({"spec": {"finalizers": []}})).await.is(200);
    assert_eq!(patched.at("/spec/finalizers"), json!(["kubernetes"]));
    let patched = api.patch(&path, MERGE_PATCH, json!({"status": {"phase": "Terminating"}})).await.is(200);
    assert_eq!(patched.at("/status/phase"), "Active");
}

#[tokio::test]
async fn labels_of_pod_security_have_known_values() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut seen = Vec::new();
    for labels in [
        json!({"enforce": "bogus"}),
        json!({"audit": "", "enforce": "restricted"}),
        json!({"enforce-version": "v1.20", "warn-version": "v1.020"}),
        json!({"enforce": "baseline", "enforce-version": "latest", "other": "x"}),
    ] {
        let labels = labels.as_object().unwrap().iter();
        let labels =
            labels.map(|(name, value)| (format!("pod-security.kubernetes.io/{name}"), value.clone()));
        let labels = Value::Object(labels.collect());
        let body = json!({"metadata": {"labels": labels}});
        let path = format!("/api/v1/namespaces/{ns}?dryRun=All");
        let reply = api.patch(&path, MERGE_PATCH, body).await;
        let message = reply.at("/message");
        let errors = message.as_str().unwrap_or_default().split_once(" is invalid: ");
        seen.push(format!("{} {}\n", reply.code, errors.unwrap_or_default().1));
    }
    expect![[r#"
        422 metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "bogus": must be one of privileged, baseline, restricted
        422 metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "": must be one of privileged, baseline, restricted
        422 metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "v1.020": must be "latest" or "v1.x"
        200 
    "#]]
    .assert_eq(&seen.concat());
}

#[tokio::test]
async fn a_namespace_without_finalizers_is_terminating_before_the_removal() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}");
    let mut namespace = api.get(&path).await.json();
    namespace["spec"]["finalizers"] = json!([]);
    api.put(&format!("{path}/finalize"), namespace).await.is(200);
    let wrong = json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}});
    let refused = api.delete_with(&path, wrong).await.is(409);
    assert!(refused.text_at("/message").contains("Precondition failed: UID in precondition"), "{refused}");
    assert_eq!(api.delete(&path).await.is(200).at("/status/phase"), "Terminating");
    api.delete(&path).await.is(200);
    api.get(&path).await.is(404);
}

#[tokio::test]
async fn an_update_without_a_change_removes_a_terminating_namespace_without_finalizers() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}");
    let mut namespace = api.get(&path).await.json();
    namespace["spec"]["finalizers"] = json!([]);
    api.put(&format!("{path}/finalize"), namespace).await.is(200);
    api.delete(&path).await.is(200);
    api.get(&path).await.is(200);
    api.patch(&path, MERGE_PATCH, json!({})).await.is(200);
    api.get(&path).await.is(404);
}

#[tokio::test]
async fn the_label_of_a_generated_name_has_no_manager() {
    let api = Api::start();
    let reply =
        api.post("/api/v1/namespaces?dryRun=All", json!({"metadata": {"generateName": "a"}})).await.is(201);
    assert_eq!(reply.at("/metadata/labels/kubernetes.io~1metadata.name"), reply.at("/metadata/name"));
    assert_eq!(reply.at("/metadata/managedFields/0/fieldsV1"), json!({"f:metadata": {"f:generateName": {}}}));
}
