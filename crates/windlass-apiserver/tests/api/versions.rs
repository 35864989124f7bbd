//! Objects in more than one version of a resource: the stored form, and the managers of each version.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{group, widget, widgets};
use crate::harness::{Api, MERGE_PATCH, Reply, lines};

const APPLY: &str = "application/apply-patch+yaml";

/// Returns a definition with versions, and true for each served version. The last version is stored.
fn things(id: &str, versions: &[(&str, bool)]) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"}
    }}}});
    let last = versions.len() - 1;
    let versions: Vec<Value> = versions.iter().enumerate().map(|(i, (name, served))| {
        json!({"name": name, "served": served, "storage": i == last, "schema": {"openAPIV3Schema": schema}})
    }).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{id}.example.com")},
        "spec": {
            "group": format!("{id}.example.com"), "scope": "Namespaced", "versions": versions,
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
        }
    })
}

async fn apply(api: &Api, path: &str, manager: &str, spec: Value) -> Reply {
    let version = path.split('/').nth(3).unwrap();
    let thing = json!({"apiVersion": format!("{}.example.com/{version}", api.id), "kind": "Thing",
        "metadata": {"name": "a"}, "spec": spec});
    let request = api.request(Method::PATCH, &format!("{path}?fieldManager={manager}"));
    request.body("application/apply-patch+yaml", thing.to_string()).send().await
}

/// Replaces the versions of the definition, and waits until v1 is not served any more.
async fn change(api: &Api, versions: &[(&str, bool)], v1: &str) {
    let path =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{}.example.com", api.id);
    let patch = json!({"spec": {"versions": things(&api.id, versions)["spec"]["versions"]}});
    api.patch(&path, MERGE_PATCH, patch).await.is(200);
    api.eventually(v1, |reply| reply.code == 404).await;
}

#[tokio::test]
async fn managers_of_an_unserved_version_stay_and_managers_of_a_removed_version_are_an_error() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.crd(things(&api.id, &[("v1", true), ("v2", true)])).await;
    let path = |version: &str| format!("/apis/{}.example.com/{version}/namespaces/{ns}/things/a", api.id);
    let (v1, v2) = (path("v1"), path("v2"));
    let managers = |reply: &Reply| {
        let entries = reply.at("/metadata/managedFields");
        let entries: Vec<String> = entries
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| {
                let text = |field: &str| entry[field].as_str().unwrap().replace(&api.id, "ID");
                format!("{} {} {}", text("manager"), text("operation"), text("apiVersion"))
            })
            .collect();
        format!("{} [{}]", reply.code, entries.join(", "))
    };
    let mut seen = Vec::new();
    seen.push(managers(&apply(&api, &v1, "one", json!({"a": "1"})).await));
    seen.push(managers(&apply(&api, &v2, "two", json!({"b": "1"})).await));
    change(&api, &[("v1", false), ("v2", true)], &v1).await;
    seen.push(managers(&apply(&api, &v2, "two", json!({"b": "2"})).await));
    seen.push(managers(&api.patch(&v2, MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}})).await));
    seen.push(apply(&api, &v2, "three", json!({"a": "3"})).await.text_at("/message"));
    change(&api, &[("v2", true)], &v1).await;
    seen.push(apply(&api, &v2, "two", json!({"b": "3"})).await.to_string());
    seen.push(managers(&api.get(&v2).await));
    seen.push(managers(&api.patch(&v2, MERGE_PATCH, json!({"metadata": {"labels": {"a": "c"}}})).await));
    seen.push(managers(&apply(&api, &v2, "two", json!({"b": "4"})).await));
    expect![[r#"
        201 [one Apply ID.example.com/v1]
        200 [one Apply ID.example.com/v1, two Apply ID.example.com/v2]
        200 [one Apply ID.example.com/v1, two Apply ID.example.com/v2]
        200 [one Apply ID.example.com/v1, two Apply ID.example.com/v2, api-test Update ID.example.com/v2]
        Apply failed with 1 conflict: conflict with "one": .spec.a
        500 -: request to convert CR to an invalid group/version: ID.example.com/v1
        200 [one Apply ID.example.com/v1, two Apply ID.example.com/v2, api-test Update ID.example.com/v2]
        200 [one Apply ID.example.com/v1, two Apply ID.example.com/v2, api-test Update ID.example.com/v2]
        500 []"#]]
    .assert_eq(&seen.join("\n"));
}

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
async fn managers_stay_if_the_object_does_not_fit_their_version() {
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
    let managers = patched.at("/metadata/managedFields");
    assert_eq!(managers.as_array().map(Vec::len), Some(1), "{managers}");
    assert_eq!(managers[0]["apiVersion"], format!("{}/v2", group(&api)));
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
async fn a_write_in_one_version_keeps_the_managers_of_the_status_in_another_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/{ns}/horizontalpodautoscalers");
    let (v1, v2) = (format!("{}/x", path("v1")), format!("{}/x", path("v2")));
    let scaler = json!({
        "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": "x"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}
    });
    api.post(&format!("{}?fieldManager=spec-2", path("v2")), scaler).await.is(201);
    let status = json!({"status": {"desiredReplicas": 5, "currentReplicas": 4}});
    api.patch(&format!("{v2}/status?fieldManager=status-2"), MERGE_PATCH, status).await.is(200);
    let mut seen = Vec::new();
    for (path, manager) in [(v1.clone(), "spec-1"), (format!("{v1}/status"), "status-1")] {
        let mut object = api.get(&v1).await.is(200).json();
        for pointer in ["/spec/maxReplicas", "/status/desiredReplicas"] {
            let field = object.pointer_mut(pointer).unwrap();
            *field = json!(field.as_i64().unwrap() + 1);
        }
        let written = api.put(&format!("{path}?fieldManager={manager}"), object).await.is(200);
        let mut managers: Vec<String> = written
            .at("/metadata/managedFields")
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| format!("{}: {}", entry["manager"].as_str().unwrap(), entry["fieldsV1"]))
            .collect();
        managers.sort();
        seen.push(format!("after {manager}"));
        seen.extend(managers);
    }
    expect![[r#"
        after spec-1
        spec-1: {"f:spec":{"f:maxReplicas":{}}}
        spec-2: {"f:spec":{"f:metrics":{},"f:minReplicas":{},"f:scaleTargetRef":{"f:apiVersion":{},"f:kind":{},"f:name":{}}}}
        status-2: {"f:status":{"f:currentReplicas":{},"f:desiredReplicas":{}}}
        after status-1
        spec-1: {"f:spec":{"f:maxReplicas":{}}}
        spec-2: {"f:spec":{"f:metrics":{},"f:minReplicas":{},"f:scaleTargetRef":{"f:apiVersion":{},"f:kind":{},"f:name":{}}}}
        status-1: {"f:status":{"f:desiredReplicas":{}}}
        status-2: {"f:status":{"f:currentReplicas":{}}}
    "#]].assert_eq(&lines(&seen));
}
