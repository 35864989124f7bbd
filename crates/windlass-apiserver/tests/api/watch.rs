//! Watching a collection.

use expect_test::expect;
use serde_json::json;

use crate::fixtures::{group, labelled, pod, secret, widget, widgets_path};
use crate::harness::{Api, MERGE_PATCH};

#[tokio::test]
async fn a_watch_tells_of_every_change_after_its_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.post(&path, secret("before")).await.is(201);
    let version = api.get(&path).await.version();
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    assert_eq!(watch.code, 200);
    api.post(&path, secret("a")).await.is(201);
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"data": {"k": "dg=="}})).await.is(200);
    api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(watch.take(3).await, ["ADDED a", "MODIFIED a", "DELETED a"]);
}

#[tokio::test]
async fn an_event_has_the_object_as_a_get_would_show_it() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    let version = api.get(&path).await.version();
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    let created = api.post(&path, secret("a")).await.is(201);
    let event = watch.next().await;
    assert_eq!(event.object, created.json());
    api.delete(&format!("{path}/a")).await.is(200);
    let deleted = watch.next().await;
    assert!(deleted.version() > created.version(), "the deletion has a version of its own");
    expect![[r#"
        DELETED {
          "apiVersion": "v1",
          "kind": "Secret",
          "metadata": {
            "creationTimestamp": "TIME",
            "managedFields": [
              "api-test Update v1: {'f:type':{}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "type": "Opaque"
        }"#]]
    .assert_eq(&deleted.to_string());
}

#[tokio::test]
async fn a_watch_without_a_version_starts_with_what_is_there() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    for name in ["b", "a"] {
        api.post(&path, secret(name)).await.is(201);
    }
    let mut watch = api.watch(&path).await;
    assert_eq!(watch.take(2).await, ["ADDED a", "ADDED b"]);
    api.post(&path, secret("c")).await.is(201);
    assert_eq!(watch.take(1).await, ["ADDED c"]);
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_up() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut watch = api.watch(&format!("/api/v1/namespaces/{ns}/secrets?timeoutSeconds=1")).await;
    assert!(watch.rest().await.is_empty());
}

#[tokio::test]
async fn one_object_is_watched_by_a_field_selector_or_by_the_old_path() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    let version = api.get(&path).await.version();
    let selected = format!("{path}?resourceVersion={version}&fieldSelector=metadata.name%3Db");
    let mut by_selector = api.watch(&selected).await;
    let old = format!("/api/v1/watch/namespaces/{ns}/secrets/b?resourceVersion={version}");
    let mut by_path = api.request(http::Method::GET, &old).stream().await;
    for name in ["a", "b"] {
        api.post(&path, secret(name)).await.is(201);
    }
    assert_eq!(by_selector.take(1).await, ["ADDED b"]);
    assert_eq!(by_path.take(1).await, ["ADDED b"]);
    let got = api.get(&format!("{path}/b?watch=true")).await.is(200);
    assert_eq!(got.text_at("/kind"), "Secret", "the path of an object is read, whatever the query says");
}

#[tokio::test]
async fn the_old_watch_prefix_works() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/secrets"), secret("a")).await.is(201);
    let request =
        api.request(http::Method::GET, &format!("/api/v1/watch/namespaces/{ns}/secrets?timeoutSeconds=1"));
    let mut watch = request.stream().await;
    assert_eq!(watch.take(1).await, ["ADDED a"]);
}

#[tokio::test]
async fn an_object_enters_and_leaves_a_selected_watch() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.post(&path, secret("a")).await.is(201);
    let version = api.get(&path).await.version();
    let mut watch = api.watch(&format!("{path}?labelSelector=on%3Dyes&resourceVersion={version}")).await;
    let label = |value: &str| json!({"metadata": {"labels": {"on": value}}});
    api.patch(&format!("{path}/a"), MERGE_PATCH, label("yes")).await.is(200);
    let out = api.patch(&format!("{path}/a"), MERGE_PATCH, label("no")).await.is(200);
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"data": {"unseen": "dg=="}})).await.is(200);
    api.patch(&format!("{path}/a"), MERGE_PATCH, label("yes")).await.is(200);
    api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(watch.take(1).await, ["ADDED a"]);
    let left = watch.next().await;
    assert_eq!(left.kind, "DELETED");
    assert_eq!(left.object["metadata"]["labels"], json!({"on": "yes"}), "as it was when it last matched");
    assert_eq!(left.version(), out.version(), "at the version of the change that took it out");
    assert_eq!(watch.take(2).await, ["ADDED a", "DELETED a"]);
}

#[tokio::test]
async fn a_watch_list_starts_with_all_and_says_where_that_ends() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    for name in ["b", "a"] {
        api.post(&path, secret(name)).await.is(201);
    }
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = api.watch(&format!("{path}?{query}")).await;
    assert_eq!(watch.take(2).await, ["ADDED a", "ADDED b"]);
    let end = watch.next().await;
    assert!(end.version() >= api.get(&format!("{path}/a")).await.version());
    expect![[r#"
        BOOKMARK {
          "apiVersion": "v1",
          "kind": "Secret",
          "metadata": {
            "annotations": {
              "k8s.io/initial-events-end": "true"
            },
            "resourceVersion": "RV"
          }
        }"#]]
    .assert_eq(&end.to_string());
    api.post(&path, secret("c")).await.is(201);
    assert_eq!(watch.take(1).await, ["ADDED c"]);
}

#[tokio::test]
async fn a_watch_of_the_present_state_says_where_the_state_ends() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.post(&path, secret("a")).await.is(201);
    for query in ["allowWatchBookmarks=true", "allowWatchBookmarks=true&resourceVersion=0"] {
        let mut watch = api.watch(&format!("{path}?{query}")).await;
        let mut end = watch.next().await;
        while end.kind != "BOOKMARK" {
            end = watch.next().await;
        }
        assert_eq!(end.object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true", "{query}");
    }
    let refused = api.get(&format!("{path}?watch=1&continue=x")).await.is(422);
    assert_eq!(refused.at("/details/causes/0/field"), "resourceVersionMatch");
}

#[tokio::test]
async fn a_watch_list_of_custom_resources_and_of_nothing() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let query =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0";
    let mut watch = api.watch(&format!("{path}?{query}")).await;
    let end = watch.next().await;
    expect![[r#"
        BOOKMARK {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "annotations": {
              "k8s.io/initial-events-end": "true"
            },
            "resourceVersion": "RV"
          }
        }"#]]
    .assert_eq(&end.to_string());
    api.post(&path, widget(&api, "a")).await.is(201);
    assert_eq!(watch.take(1).await, ["ADDED a"]);
}

#[tokio::test]
async fn the_parameters_of_a_watch_list_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.get(&format!("{path}?watch=1&sendInitialEvents=true")).await.shows(expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"#]]);
    api.get(&format!("{path}?watch=1&resourceVersionMatch=NotOlderThan")).await.shows(expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"#]]);
    let exact = "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true&resourceVersion=5";
    api.get(&format!("{path}?{exact}")).await.shows(expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: [as below]
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan
        - FieldValueNotSupported resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan""#]]);
    api.get(&format!("{path}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"))
        .await
        .shows(expect![[r#"
            422 Invalid: ListOptions.meta.k8s.io "" is invalid: [as below]
            group="meta.k8s.io" kind="ListOptions"
            - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
            - FieldValueForbidden sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"#]]);
}

#[tokio::test]
async fn a_watch_from_a_version_that_is_no_number_is_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.get(&format!("{path}?watch=true&resourceVersion=x")).await.shows(expect![[
        r#"500 -: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#
    ]]);
    api.get(&format!("{path}?watch=true&timeoutSeconds=x"))
        .await
        .shows(expect![[r#"400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax"#]]);
    api.get(&format!("{path}?watch=maybe&limit=x"))
        .await
        .shows(expect![[r#"400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax"#]]);
}

#[tokio::test]
async fn the_watch_of_a_kind_ends_when_its_definition_goes() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let version = api.get(&path).await.version();
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    let definition =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{}", group(&api));
    api.delete(&definition).await.is(200);
    let events = watch.rest().await;
    let lines: Vec<String> = events.iter().map(|event| format!("{} {}", event.kind, event.name())).collect();
    assert_eq!(lines, ["DELETED a"]);
}

#[tokio::test]
async fn two_watches_see_the_same_order() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    let version = api.get(&path).await.version();
    let mut early = api.watch(&format!("{path}?resourceVersion={version}")).await;
    for name in 0..30 {
        let made = labelled(secret(&format!("s{name}")), json!({"n": name.to_string()}));
        api.post(&path, made).await.is(201);
    }
    let mut late = api.watch(&format!("{path}?resourceVersion={version}")).await;
    let mut versions = Vec::new();
    for _ in 0..30 {
        let (one, other) = (early.next().await, late.next().await);
        assert_eq!(one.object, other.object);
        versions.push(one.version());
    }
    assert!(versions.is_sorted());
}

#[tokio::test]
async fn a_watch_of_custom_resources_tells_of_status_changes() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let version = api.get(&path).await.version();
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    api.patch(&format!("{path}/a/status"), MERGE_PATCH, json!({"status": {"phase": "Ready"}})).await.is(200);
    assert_eq!(watch.take(1).await, ["ADDED a"]);
    let event = watch.next().await;
    assert_eq!(event.object["status"], json!({"phase": "Ready"}));
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_says_so_and_ends() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.post(&path, secret("a")).await.is(201);
    api.compact();
    let mut watch = api.watch(&format!("{path}?resourceVersion=1")).await;
    assert_eq!(watch.code, 200, "the error comes as an event");
    let error = watch.next().await;
    if api.is_shared() && error.kind == "ADDED" {
        // A server that has just been started forgets nothing for some minutes.
        return;
    }
    assert_eq!(error.kind, "ERROR");
    assert_eq!((&error.object["code"], &error.object["reason"]), (&json!(410), &json!("Expired")));
    let message = error.object["message"].as_str().unwrap();
    assert!(message.starts_with("too old resource version: 1 ("), "{message}");
    assert!(watch.rest().await.is_empty());
}

#[tokio::test]
async fn a_watch_goes_on_from_a_list_though_a_definition_went_in_between() {
    let api = Api::start();
    let path = "/apis/storage.k8s.io/v1/csinodes";
    let version = api.get(path).await.is(200).version();
    widgets_path(&api).await;
    let definition =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{}", group(&api));
    api.delete(&definition).await.is(200);
    api.eventually(&definition, |reply| reply.code == 404).await;
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    api.post(path, json!({"metadata": {"name": api.id}, "spec": {"drivers": []}})).await.is(201);
    api.discard(format!("{path}/{}", api.id));
    assert_eq!(watch.next().await.kind, "ADDED");
}

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
async fn a_field_selector_beside_a_name_selects_the_name() {
    let api = Api::start();
    let ns = api.namespace().await;
    let watched = format!("/api/v1/watch/namespaces/{ns}/configmaps/a?timeoutSeconds=1");
    for (selector, code) in [
        ("metadata.name%3Da", 200),
        ("metadata.name%3Da,metadata.namespace%3Dx", 200),
        ("metadata.name%3Db", 400),
        ("metadata.namespace%3Dx", 400),
        ("metadata.name!%3Db", 400),
    ] {
        let reply = api.get(&format!("{watched}&fieldSelector={selector}")).await.is(code);
        if code == 400 {
            let why = "fieldSelector metadata.name doesn't match requested name";
            assert_eq!(reply.text_at("/message"), why, "{selector}");
        }
    }
}

#[tokio::test]
async fn a_field_selector_beside_a_name_keeps_its_other_conditions() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&pods, pod("a")).await.is(201);
    let watched =
        format!("/api/v1/watch/namespaces/{ns}/pods/a?timeoutSeconds=1&fieldSelector=metadata.name%3Da");
    let mut seen = Vec::new();
    for phase in ["Pending", "Running"] {
        let mut watch = api.watch(&format!("{watched},status.phase%3D{phase}")).await;
        seen.push(watch.rest().await.into_iter().map(|event| event.kind).collect::<Vec<_>>());
    }
    assert_eq!(seen, [vec!["ADDED"], vec![]]);
}
