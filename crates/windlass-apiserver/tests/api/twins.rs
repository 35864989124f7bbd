//! Behaviour of kube-apiserver that random traffic has shown, one test for each family.

use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{config_map, deployment, group, pod, widget, widgets, widgets_path};
use crate::harness::{Api, MERGE_PATCH};

const APPLY: &str = "application/apply-patch+yaml";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test]
async fn the_initial_bookmark_has_the_zero_values_of_the_kind() {
    let api = Api::start();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=none";
    let mut watch = api.watch(&format!("/apis/apps/v1/deployments?{query}")).await;
    let spec = watch.next().await.object["spec"].clone();
    let template = json!({"metadata": {}, "spec": {"containers": null}});
    assert_eq!(spec, json!({"replicas": 0, "selector": null, "strategy": {}, "template": template}));
    let mut watch = api.watch(&format!("/apis/apps/v1/daemonsets?{query}")).await;
    let annotations = watch.next().await.object["metadata"]["annotations"].clone();
    assert_eq!(annotations["deprecated.daemonset.template.generation"], "0");
}

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
async fn a_watch_does_not_reach_back_before_its_definition() {
    let api = Api::start();
    let version = api.get("/api/v1/namespaces/default").await.version();
    let path = widgets_path(&api).await;
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    let event = watch.next().await;
    assert_eq!(event.object["code"], 410, "{}", event.object);
}

#[tokio::test]
async fn the_first_update_of_a_claim_is_a_write_and_the_second_is_none() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/persistentvolumeclaims");
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    });
    let created = api.post(&path, claim).await.is(201);
    assert_eq!(created.at("/status/phase"), "Pending");
    let first = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({})).await.is(200);
    assert!(first.version() > created.version());
    let second = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({})).await.is(200);
    assert_eq!(second.version(), first.version());
}

#[tokio::test]
async fn the_empty_name_of_a_namespace_stands_for_all() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), config_map("twin")).await.is(201);
    let all = api.get("/api/v1/namespaces//configmaps?fieldSelector=metadata.name%3Dtwin").await.is(200);
    assert!(!all.names().is_empty());
    api.get(&format!("/api/v1/namespaces/{ns}/namespaces")).await.is(404);
}

#[tokio::test]
async fn formats_and_defaults_of_definitions_are_checked() {
    let api = Api::start();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let mut definition = widgets(&api);
    definition.pointer_mut(schema).unwrap()["size"]["format"] = json!("odd");
    definition["spec"]["versions"][0]["deprecationWarning"] = json!("old");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let reply = api.post(path, definition.clone()).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "spec.versions[0].deprecationWarning");
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    let reply = api.post(path, definition.clone()).await.is(201);
    assert!(reply.warnings().iter().any(|text| text.contains("unrecognized format")), "{reply}");
    definition.pointer_mut(schema).unwrap()["size"] = json!({"type": "array", "items": {"required": 1}});
    let reply = api.post(path, definition).await.is(400);
    assert!(reply.text_at("/message").ends_with("properties.items.required of type []string"), "{reply}");
}

#[tokio::test]
async fn a_namespace_that_nothing_holds_is_terminating_before_it_goes() {
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
async fn a_service_needs_a_name_for_its_address() {
    let api = Api::start();
    let ns = api.namespace().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "."}, "spec": {"ports": [{"port": 80}]}
    });
    let path = format!("/api/v1/namespaces/{ns}/services");
    let reply = api.post(&path, service.clone()).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "spec.clusterIPs");
    let reply = api.post(&format!("{path}?dryRun=All"), service).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "metadata.name");
}

#[tokio::test]
async fn a_patch_without_a_version_is_told_why() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let reply = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"apiVersion": null})).await.is(500);
    assert!(reply.text_at("/message").contains("Object 'apiVersion' is missing"), "{reply}");
    let owners = json!({"metadata": {"ownerReferences": [{"kind": ["x"]}]}});
    let reply = api.patch(&format!("{path}/a"), MERGE_PATCH, owners).await.is(422);
    assert!(reply.text_at("/message").contains("OwnerReference.ownerReferences.kind"), "{reply}");
    // An empty list of managers gets lost on the way.
    let reply = api
        .patch(&format!("{path}/a"), MERGE_PATCH, json!({"metadata": {"managedFields": []}}))
        .await
        .is(200);
    assert!(reply.at("/metadata/managedFields/0").is_object());
}

#[tokio::test]
async fn an_apply_fits_the_types_of_the_kind() {
    let api = Api::start();
    let ns = api.namespace().await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {"acquireTime": "2001-01-01 00:00"}
    });
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a?fieldManager=m");
    let reply = api.patch(&path, APPLY, lease).await.is(500);
    assert!(reply.text_at("/message").starts_with("failed to convert new object (/a; "), "{reply}");
}

#[tokio::test]
async fn a_pod_on_a_node_that_is_gone_is_not_resized() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut bound = pod("a");
    bound["spec"]["nodeName"] = json!("gone");
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, bound).await.is(201);
    let size = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}});
    let strategic = "application/strategic-merge-patch+json";
    let reply = api.patch(&format!("{path}/a/resize"), strategic, size).await;
    assert!(reply.code == 403 || reply.code == 422, "{reply}");
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"spec": {"activeDeadlineSeconds": 9}})).await.is(200);
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
