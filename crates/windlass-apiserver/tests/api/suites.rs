//! Findings of the test suites of other projects.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, MERGE_PATCH, Reply};

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
async fn managers_of_a_version_that_is_not_served_stay_and_those_of_one_that_is_gone_are_in_the_way() {
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
        200 []
        409 []"#]]
    .assert_eq(&seen.join("\n"));
}
