//! Requests while CustomResourceDefinitions come, change and go; and limits of stored objects.

use serde_json::{Value, json};

use crate::fixtures::{config_map, group, pod, secret, widget, widgets, widgets_path};
use crate::harness::{Api, MERGE_PATCH, deadline};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn a_watch_ends_when_its_definition_changes() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let definition = format!("{DEFINITIONS}/widgets.{}", group(&api));
    let version = api.get(&path).await.version();
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    assert_eq!(watch.take(1).await, ["ADDED a"]);
    // A label changes nothing that is served.
    api.patch(&definition, MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    api.post(&path, widget(&api, "b")).await.is(201);
    assert_eq!(watch.take(1).await, ["ADDED b"]);
    let names = json!({"spec": {"names": {"shortNames": [format!("w{}", api.id)]}}});
    api.patch(&definition, MERGE_PATCH, names).await.is(200);
    let rest = tokio::time::timeout(deadline(), watch.rest()).await.expect("the watch ends");
    assert!(rest.is_empty(), "{} more events", rest.len());
}

#[tokio::test]
async fn a_watch_ends_when_its_definition_goes() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let version = api.get(&path).await.version();
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    api.delete(&format!("{DEFINITIONS}/widgets.{}", group(&api))).await.is(200);
    let rest = tokio::time::timeout(deadline(), watch.rest()).await.expect("the watch ends");
    assert!(rest.iter().all(|event| event.name() == "a"));
}

#[tokio::test]
async fn objects_follow_an_edited_schema() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let definition = format!("{DEFINITIONS}/widgets.{}", group(&api));
    let mut edited = api.get(&definition).await.json();
    edited["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["added"] =
        json!({"type": "string", "default": "later"});
    api.put(&definition, edited).await.is(200);
    let shown = |object: &Value| object["spec"]["added"] == "later";
    api.eventually(&format!("{path}/a"), |reply| shown(&reply.json())).await;
    let list = api.get(&path).await.json();
    assert!(shown(&list["items"][0]));
    let mut watch = api.watch(&path).await;
    assert!(shown(&watch.next().await.object));
}

#[tokio::test]
async fn a_definition_never_replaces_a_built_in_resource() {
    let api = Api::start();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "storageclasses.storage.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1111"},
        },
        "spec": {
            "group": "storage.k8s.io",
            "scope": "Namespaced",
            "names": {"plural": "storageclasses", "kind": "StorageClass", "listKind": "StorageClassList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    api.discard(format!("{DEFINITIONS}/storageclasses.storage.k8s.io"));
    api.post(DEFINITIONS, definition).await.is(201);
    let class = json!({"metadata": {"name": format!("c-{}", api.id)}, "provisioner": "example.com/p"});
    api.discard(format!("/apis/storage.k8s.io/v1/storageclasses/c-{}", api.id));
    let created = api.post("/apis/storage.k8s.io/v1/storageclasses", class).await.is(201);
    assert_eq!(created.at("/reclaimPolicy"), "Delete", "it is the built-in kind, with its defaults");
    api.delete(&format!("{DEFINITIONS}/storageclasses.storage.k8s.io")).await.is(200);
}

#[tokio::test]
async fn nothing_is_left_of_objects_created_while_their_definition_went() {
    let api = Api::start();
    if api.is_shared() {
        // Its definitions take seconds to be served.
        return;
    }
    let path = widgets_path(&api).await;
    for round in 0..20 {
        let definition = format!("{DEFINITIONS}/widgets.{}", group(&api));
        let names: Vec<String> = (0..20).map(|index| format!("w{round}-{index}")).collect();
        let creations = names.iter().map(|name| api.post(&path, widget(&api, name)));
        let deletion = async {
            tokio::task::yield_now().await;
            api.delete(&definition).await.is(200)
        };
        futures::future::join(futures::future::join_all(creations), deletion).await;
        api.eventually(&definition, |reply| reply.code == 404).await;
        api.crd(widgets(&api)).await;
        assert!(api.get(&path).await.names().is_empty(), "round {round}");
    }
}

#[tokio::test]
async fn other_requests_are_answered_while_a_definition_with_many_objects_goes() {
    let api = Api::start();
    if api.is_shared() {
        return;
    }
    let path = widgets_path(&api).await;
    for index in 0..1_000 {
        api.post(&path, widget(&api, &format!("w{index}"))).await.is(201);
    }
    let maps = "/api/v1/namespaces/default/configmaps";
    let definition = format!("{DEFINITIONS}/widgets.{}", group(&api));
    let deletion = async {
        api.delete(&definition).await.is(200);
        "deletion"
    };
    let creation = async {
        tokio::task::yield_now().await;
        api.post(maps, config_map("a")).await.is(201);
        "creation"
    };
    tokio::pin!(deletion, creation);
    let (first, _) = futures::future::select(deletion, creation).await.factor_first();
    assert_eq!(first, "creation");
}

#[tokio::test]
async fn an_object_that_etcd_would_not_take_is_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut body = pod("a");
    body["spec"]["containers"][0]["command"] = json!(["x".repeat(1_600_000)]);
    let refused = api.post(&format!("/api/v1/namespaces/{ns}/pods"), body).await.is(500);
    assert_eq!(refused.at("/message"), "etcdserver: request is too large");
}

#[tokio::test]
async fn a_list_goes_on_after_many_large_updates() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    for name in ["a", "b", "c"] {
        api.post(&path, secret(name)).await.is(201);
    }
    let page = api.get(&format!("{path}?limit=1")).await.is(200);
    let version = page.version();
    for round in 0..160 {
        let mut large = secret("a");
        large["stringData"] = json!({"k": format!("{round}{}", "x".repeat(300_000))});
        api.put(&format!("{path}/a"), large).await.is(200);
    }
    let token = page.text_at("/metadata/continue");
    let rest = api.get(&format!("{path}?limit=5&continue={token}")).await.is(200);
    assert_eq!(rest.names(), ["b", "c"]);
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    let event = tokio::time::timeout(deadline(), watch.next()).await.expect("an event");
    assert_eq!((event.kind.as_str(), event.name()), ("MODIFIED", "a"));
}
