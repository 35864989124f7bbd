//! The stored form of a write, and unchanged objects that are written nevertheless.

use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{group, pod, widget, widgets};
use crate::harness::{Answer, Api, MERGE_PATCH, Webhook, rule};

const APPLY: &str = "application/apply-patch+yaml";

/// Serves widgets in two versions, with `v1` as the storage version, and with these properties of `spec`.
async fn two_versions(api: &Api, v1: Value, v2: Value) -> [String; 2] {
    let ns = api.namespace().await;
    let mut definition = widgets(api);
    let version = |name: &str, properties: Value| {
        json!({
            "name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": properties}, "status": {"type": "object"}
            }}}
        })
    };
    definition["spec"]["versions"] = json!([version("v1", v1), version("v2", v2)]);
    api.crd(definition).await;
    let paths = ["v1", "v2"].map(|version| format!("/apis/{}/{version}/namespaces/{ns}/widgets", group(api)));
    api.eventually(&paths[1], |reply| reply.code == 200).await;
    paths
}

/// Changes the properties of the `spec` of both versions.
async fn redefine(api: &Api, paths: &[String; 2], v1: Value, v2: Value) {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{}", group(api));
    let mut definition = api.get(&path).await.is(200).json();
    for (index, properties) in [v1, v2].into_iter().enumerate() {
        definition["spec"]["versions"][index]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
            properties;
    }
    let marker = json!([{"name": "New", "type": "string", "jsonPath": ".kind"}]);
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = marker;
    api.put(&path, definition).await.is(200);
    // The real server serves the new definition a moment later.
    let is_new = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for _ in 0..200 {
        let table = api.request(Method::GET, &paths[0]).accept(is_new).send().await;
        if table.code == 200 && table.json().to_string().contains("\"New\"") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("the new definition is not served");
}

#[tokio::test]
async fn managers_go_if_the_object_does_not_fit_their_version() {
    let api = Api::start();
    let text = json!({"type": "string"});
    let paths = two_versions(&api, json!({"a": text}), json!({"a": text})).await;
    let mut body = widget(&api, "x");
    body["apiVersion"] = json!(format!("{}/v2", group(&api)));
    body["spec"] = json!({"a": "1"});
    let version = api.post(&paths[1], body).await.is(201).version();
    let with_default = json!({"a": text, "b": {"type": "string", "default": "new"}});
    redefine(&api, &paths, with_default, json!({"a": text})).await;
    // In version 1, the object has a field that version 2, the version of the manager, does not know.
    let patched = api.patch(&format!("{}/x", paths[0]), MERGE_PATCH, json!({})).await.is(200);
    assert_eq!(patched.at("/metadata/managedFields"), Value::Null);
    assert_ne!(patched.version(), version);
}

#[tokio::test]
async fn an_update_without_a_change_stores_what_its_version_leaves() {
    let api = Api::start();
    let text = json!({"type": "string"});
    let paths = two_versions(&api, json!({"a": text, "b": text}), json!({"a": text})).await;
    let mut body = widget(&api, "x");
    body["spec"] = json!({"a": "1", "b": "2"});
    let version = api.post(&paths[0], body).await.is(201).version();
    let patched = api.patch(&format!("{}/x", paths[1]), MERGE_PATCH, json!({})).await.is(200);
    assert_ne!(patched.version(), version);
    assert_eq!(api.get(&format!("{}/x", paths[0])).await.at("/spec"), json!({"a": "1"}));
}

#[tokio::test]
async fn a_deletion_that_waits_stores_the_object_as_its_definition_is_now() {
    let api = Api::start();
    let text = json!({"type": "string"});
    let paths = two_versions(&api, json!({"a": text, "b": text}), json!({"a": text})).await;
    let mut body = widget(&api, "x");
    body["spec"] = json!({"a": "1", "b": "2"});
    body["metadata"]["finalizers"] = json!(["example.com/f"]);
    api.post(&paths[0], body).await.is(201);
    let path = format!("{}/x", paths[0]);
    let version = api.delete(&path).await.is(200).version();
    assert_eq!(api.delete(&path).await.is(200).version(), version, "nothing changes");
    redefine(&api, &paths, json!({"a": text}), json!({"a": text})).await;
    assert_ne!(api.delete(&path).await.is(200).version(), version, "the field is gone");
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
}

#[tokio::test]
async fn a_deletion_that_waits_stores_what_its_version_leaves() {
    let api = Api::start();
    let text = json!({"type": "string"});
    let with_default = json!({"a": text, "b": text, "c": {"type": "string", "default": "d"}});
    let paths = two_versions(&api, with_default, json!({"a": text})).await;
    let mut body = widget(&api, "x");
    body["spec"] = json!({"a": "1", "b": "2", "c": "3"});
    body["metadata"]["finalizers"] = json!(["example.com/f"]);
    api.post(&paths[0], body).await.is(201);
    let [first, second] = paths.map(|path| format!("{path}/x"));
    assert_eq!(api.delete(&second).await.is(200).at("/spec"), json!({"a": "1"}));
    assert_eq!(api.get(&first).await.at("/spec"), json!({"a": "1", "c": "d"}));
    api.patch(&first, MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
}

#[tokio::test]
async fn what_an_apply_leaves_null_is_invalid_for_a_custom_resource() {
    let api = Api::start();
    let text = json!({"type": "string"});
    let [path, _] = two_versions(&api, json!({"a": text}), json!({"a": text})).await;
    let mut body = widget(&api, "x");
    body["spec"] = json!({"a": "1"});
    let apply = format!("{path}/x?fieldManager=m");
    api.patch(&apply, APPLY, body.clone()).await.is(201);
    body["spec"] = json!({});
    let refused = api.patch(&apply, APPLY, body).await.is(422);
    assert!(refused.text_at("/message").contains("spec in body must be of type object: \"null\""));
}

#[tokio::test]
async fn the_first_version_of_autoscalers_has_the_status_in_annotations_of_its_managers() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers");
    let body = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "x"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}
    });
    let version = api.post(&path, body).await.is(201).version();
    let status = json!({"status": {"currentCPUUtilizationPercentage": 10, "currentReplicas": 1, "desiredReplicas": 2}});
    let patched = api.patch(&format!("{path}/x?fieldManager=m"), MERGE_PATCH, status.clone()).await.is(200);
    assert_eq!(patched.at("/status/currentReplicas"), json!(0), "the object's own path does not write it");
    let managers = patched.at("/metadata/managedFields").to_string();
    assert!(managers.contains("f:autoscaling.alpha.kubernetes.io/current-metrics"), "{managers}");
    assert_ne!(patched.version(), version);
    // The status keeps the stored form: written in version 1, the status has no `averageValue`.
    api.patch(&format!("{path}/x/status"), MERGE_PATCH, status.clone()).await.is(200);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let version = api.patch(&format!("{path}/x"), MERGE_PATCH, labels).await.is(200).version();
    assert_ne!(api.patch(&format!("{path}/x/status"), MERGE_PATCH, status).await.is(200).version(), version);
}

#[tokio::test]
async fn a_dry_run_of_a_new_apply_keeps_its_resource_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/x?fieldManager=m");
    let mut body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "resourceVersion": "1"}});
    let dry = api.patch(&format!("{path}&dryRun=All"), APPLY, body.clone()).await.is(201);
    assert_eq!(dry.text_at("/metadata/resourceVersion"), "1");
    body["metadata"]["resourceVersion"] = json!("x");
    let refused = api.patch(&path, APPLY, body).await.is(500);
    assert_eq!(refused.text_at("/message"), "strconv.ParseUint: parsing \"x\": invalid syntax");
}

#[tokio::test]
async fn an_apply_whose_object_has_a_link_to_itself_is_a_write() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/x?fieldManager=m");
    let mut body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"k": "v"}});
    let version = api.patch(&path, APPLY, body.clone()).await.is(201).version();
    // The time of the manager, in seconds, is what changes.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(api.patch(&path, APPLY, body.clone()).await.is(200).version(), version);
    body["metadata"]["selfLink"] = json!("/x");
    assert_ne!(api.patch(&path, APPLY, body).await.is(200).version(), version);
}

#[tokio::test]
async fn an_update_without_a_change_ends_a_namespace_that_nothing_holds() {
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
async fn an_apply_is_stored_at_its_path_whatever_name_a_webhook_gives() {
    let hook = Webhook::start(|_, _| {
        Answer::patch(json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]))
    })
    .await;
    let api = Api::start();
    let ns = api.namespace().await;
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("CREATE", "", "v1", "pods")]
    }]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, pod("x")).await.is(201);
    // The name `other` is taken now.
    let applied = api.patch(&format!("{path}/y?fieldManager=m"), APPLY, pod("y")).await.is(201);
    assert_eq!(applied.text_at("/metadata/name"), "other");
    assert_eq!(api.get(&format!("{path}/y")).await.is(200).text_at("/metadata/name"), "other");
}

#[tokio::test]
async fn what_an_update_may_not_change_is_no_write() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}");
    let patch = json!({"spec": {"finalizers": ["example.com/f"]}});
    let version = api.patch(&path, MERGE_PATCH, patch.clone()).await.is(200).version();
    // The time of the manager, in seconds, would change.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(api.patch(&path, MERGE_PATCH, patch).await.is(200).version(), version);
}

#[tokio::test]
async fn a_webhook_is_not_called_for_an_object_that_is_another_one() {
    let hook = Webhook::start(|_, _| Answer::deny(json!({"message": "no"}))).await;
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, pod("x")).await.is(201);
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("UPDATE", "", "v1", "pods")]
    }]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let mut body = pod("x");
    body["metadata"]["uid"] = json!("11111111-1111-4111-8111-111111111111");
    api.put(&format!("{path}/x"), body).await.is(409);
    let mut account = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    account["metadata"] = json!({"name": "none"});
    let webhooks = json!([{
        "name": "b.webhook.test", "clientConfig": "/b", "rules": [rule("CREATE", "", "v1", "serviceaccounts/token")]
    }]);
    hook.configure(&api, "validating", "b", webhooks).await;
    api.post(&format!("/api/v1/namespaces/{ns}/serviceaccounts/none/token"), account).await.is(404);
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
async fn the_version_of_a_new_object_is_read_after_webhooks() {
    let hook = Webhook::start(|_, _| Answer::deny(json!({"message": "no", "code": 403}))).await;
    let api = Api::start();
    let ns = api.namespace().await;
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("CREATE", "", "v1", "services")]
    }]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", "resourceVersion": "x"}, "spec": {"ports": [{"port": 80}]}
    });
    api.put(&format!("/api/v1/namespaces/{ns}/services/x"), service).await.is(403);
}

#[tokio::test]
async fn the_endpoints_of_a_service_go_with_it() {
    let api = Api::start();
    let ns = api.namespace().await;
    let core = format!("/api/v1/namespaces/{ns}");
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "x"}});
    api.post(&format!("{core}/endpoints"), endpoints).await.is(201);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "ExternalName", "externalName": "a.example.com"}
    });
    api.post(&format!("{core}/services"), service).await.is(201);
    api.delete(&format!("{core}/services/x?dryRun=All")).await.is(200);
    api.get(&format!("{core}/endpoints/x")).await.is(200);
    api.delete(&format!("{core}/services/x")).await.is(200);
    api.get(&format!("{core}/endpoints/x")).await.is(404);
}

#[tokio::test]
async fn an_object_that_outlives_its_definition_counts_its_deletion() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.crd(widgets(&api)).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    let mut body = widget(&api, "x");
    body["metadata"]["finalizers"] = json!(["example.com/f"]);
    assert_eq!(api.post(&path, body).await.is(201).at("/metadata/generation"), json!(1));
    api.delete(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{}", group(&api)))
        .await
        .is(200);
    let path = format!("{path}/x");
    let marked = api.eventually(&path, |reply| reply.at("/metadata/deletionTimestamp") != Value::Null).await;
    assert_eq!(marked.at("/metadata/generation"), json!(2));
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
}
