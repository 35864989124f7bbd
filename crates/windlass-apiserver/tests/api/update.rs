//! Replacing an object.

use std::sync::Arc;

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::fixtures::{config_map, deployment, widget, widgets_path};
use crate::harness::{Api, JSON_PATCH, MERGE_PATCH, NOT_ENFORCED, Reply, STRATEGIC_PATCH, lines};

#[tokio::test]
async fn an_update_replaces_the_object_and_moves_its_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await.is(201);
    let mut body = created.json();
    body["data"] = json!({"other": "w"});
    let updated = api.put(&format!("{path}/a"), body).await.is(200);
    assert!(updated.version() > created.version());
    assert_eq!(updated.at("/data"), json!({"other": "w"}));
    assert_eq!(updated.at("/metadata/uid"), created.at("/metadata/uid"));
    assert_eq!(updated.at("/metadata/creationTimestamp"), created.at("/metadata/creationTimestamp"));
    assert_eq!(api.get(&format!("{path}/a")).await.json(), updated.json());
}

#[tokio::test]
async fn an_update_of_a_version_that_is_gone_is_a_conflict() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let old = api.post(&path, config_map("a")).await.is(201).json();
    let mut new = old.clone();
    new["data"]["k"] = json!("w");
    api.put(&format!("{path}/a"), new).await.is(200);
    let mut late = old;
    late["data"]["k"] = json!("x");
    api.put(&format!("{path}/a"), late).await.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
        kind="configmaps" name="a""#]]);
}

#[tokio::test]
async fn a_conflict_of_a_grouped_kind_names_the_resource_with_its_group() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    let mut body = api.post(&path, deployment("a")).await.is(201).json();
    body["metadata"]["resourceVersion"] = json!("1");
    body["spec"]["paused"] = json!(true);
    api.put(&format!("{path}/a"), body).await.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on deployments.apps "a": the object has been modified; please apply your changes to the latest version and try again
        group="apps" kind="deployments" name="a""#]]);
}

#[tokio::test]
async fn an_update_without_a_version_overwrites_a_built_in_kind() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let mut body = config_map("a");
    body["data"] = json!({"k": "w"});
    let updated = api.put(&format!("{path}/a"), body).await.is(200);
    assert_eq!(updated.at("/data/k"), "w");
}

#[tokio::test]
async fn an_update_without_a_version_is_refused_for_a_custom_resource() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    api.put(&format!("{path}/a"), widget(&api, "a")).await.shows(expect![[r#"
        422 Invalid: widgets.ID.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update
        group="ID.example.com" kind="widgets" name="a"
        - FieldValueInvalid metadata.resourceVersion: Invalid value: 0: must be specified for an update"#]]);
    api.put(&format!("{path}/none"), widget(&api, "none")).await.shows(expect![[r#"
        404 NotFound: widgets.ID.example.com "none" not found
        group="ID.example.com" kind="widgets" name="none""#]]);
    let mut body = widget(&api, "none");
    body["metadata"]["resourceVersion"] = json!("1");
    api.put(&format!("{path}/none"), body).await.shows(expect![[r#"
        404 NotFound: widgets.ID.example.com "none" not found
        group="ID.example.com" kind="widgets" name="none""#]]);
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await.is(201);
    let updated = api.put(&format!("{path}/a"), created.json()).await.is(200);
    assert_eq!(updated.version(), created.version());
    assert_eq!(updated.json(), created.json());
}

#[tokio::test]
async fn an_update_of_what_is_not_there_is_not_found() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.put(&format!("/api/v1/namespaces/{ns}/configmaps/a"), config_map("a")).await.shows(expect![[r#"
        404 NotFound: configmaps "a" not found
        kind="configmaps" name="a""#]]);
    let mut body = config_map("a");
    body["metadata"]["uid"] = json!("b6d2d2b4-0000-0000-0000-000000000000");
    api.put(&format!("/api/v1/namespaces/{ns}/configmaps/a"), body).await.shows(expect![[r#"
        404 NotFound: configmaps "a" not found
        kind="configmaps" name="a""#]]);
}

#[tokio::test]
async fn some_kinds_can_be_created_by_an_update() {
    let api = Api::start();
    let ns = api.namespace().await;
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {}});
    api.put(&format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a"), lease).await.is(201);
}

#[tokio::test]
async fn the_uid_of_an_update_must_be_the_object_s() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let mut body = config_map("a");
    body["metadata"]["uid"] = json!("b6d2d2b4-0000-0000-0000-000000000000");
    api.put(&format!("{path}/a"), body).await.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/ns-ID/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: UID, UID in object meta: UID
        kind="configmaps" name="a""#]]);
}

#[tokio::test]
async fn the_name_and_namespace_of_an_update_must_be_the_path_s() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    api.put(&format!("{path}/a"), config_map("b"))
        .await
        .shows(expect!["400 BadRequest: the name of the object (b) does not match the name on the URL (a)"]);
    let mut body = config_map("a");
    body["metadata"]["namespace"] = json!("elsewhere");
    api.put(&format!("{path}/a"), body.clone()).await.shows(expect!["400 BadRequest: the namespace of the provided object does not match the namespace sent on the request"]);
    api.post(&path, body).await.shows(expect!["400 BadRequest: the namespace of the provided object does not match the namespace sent on the request"]);
    let mut nameless = config_map("a");
    nameless["metadata"] = json!({});
    api.put(&format!("{path}/a"), nameless).await.shows(expect![
        "400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided"
    ]);
}

#[tokio::test]
async fn what_never_changes_is_kept_or_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await.is(201);
    let mut body = created.json();
    body["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    body["metadata"]["generation"] = json!(9);
    body["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let updated = api.put(&format!("{path}/a"), body).await;
    updated.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "TIME": field is immutable
        kind="ConfigMap" name="a"
        - FieldValueInvalid metadata.deletionTimestamp: Invalid value: "TIME": field is immutable"#]]);
}

#[tokio::test]
async fn the_generation_counts_changes_of_the_spec() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/replicasets");
    let mut body = deployment("a");
    body["kind"] = json!("ReplicaSet");
    body["spec"]["replicas"] = json!(0);
    let created = api.post(&path, body.clone()).await.is(201);
    assert_eq!(created.at("/metadata/generation"), 1);
    body["metadata"]["labels"] = json!({"x": "y"});
    let labelled = api.put(&format!("{path}/a"), body.clone()).await.is(200);
    assert_eq!(labelled.at("/metadata/generation"), 1);
    body["spec"]["minReadySeconds"] = json!(1);
    let changed = api.put(&format!("{path}/a"), body).await.is(200);
    assert_eq!(changed.at("/metadata/generation"), 2);
}

#[tokio::test]
async fn a_custom_resource_s_generation_counts_changes_outside_of_metadata_and_status() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = api.post(&path, widget(&api, "a")).await.is(201).json();
    assert_eq!(body["metadata"]["generation"], 1);
    body["metadata"]["annotations"] = json!({"x": "y"});
    let mut body = api.put(&format!("{path}/a"), body).await.is(200).json();
    assert_eq!(body["metadata"]["generation"], 1);
    body["spec"]["size"] = json!(4);
    let body = api.put(&format!("{path}/a"), body).await.is(200).json();
    assert_eq!(body["metadata"]["generation"], 2);
}

#[tokio::test]
async fn an_immutable_config_map_stays_as_it_is() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut body = config_map("a");
    body["immutable"] = json!(true);
    api.post(&path, body.clone()).await.is(201);
    body["data"]["k"] = json!("w");
    body["immutable"] = json!(false);
    api.put(&format!("{path}/a"), body).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: [as below]
        kind="ConfigMap" name="a"
        - FieldValueForbidden data: Forbidden: field is immutable when `immutable` is set
        - FieldValueForbidden immutable: Forbidden: field is immutable when `immutable` is set"#]]);
}

#[tokio::test]
async fn an_update_that_would_create_has_no_uid() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/events/a");
    let about = json!({"kind": "Pod", "name": "a", "namespace": ns});
    let mut event = json!({"metadata": {"name": "a", "uid": "11111111-1111-4111-8111-111111111111"},
        "involvedObject": about});
    api.put(&path, event.clone()).await.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on events "a": StorageError: invalid object, Code: 4, Key: /registry/events/ns-ID/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: UID, UID in object meta: 
        kind="events" name="a""#]]);
    event["metadata"] = json!({"name": "a"});
    api.put(&path, event).await.is(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_updates_that_would_create_an_object_one_does() {
    let api = Arc::new(Api::start());
    let ns = api.namespace().await;
    for round in 0..40 {
        let mut updates = JoinSet::new();
        for _ in 0..8 {
            let (api, name) = (Arc::clone(&api), format!("s{round}"));
            let path = format!("/api/v1/namespaces/{ns}/services/{name}");
            let service = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
            updates.spawn(async move { api.put(&path, service).await.code });
        }
        let mut codes = updates.join_all().await;
        codes.sort_unstable();
        assert_eq!(codes, [200, 200, 200, 200, 200, 200, 200, 201]);
    }
}

#[tokio::test]
async fn a_resource_version_is_a_number_and_zero_is_none() {
    let api = Api::start();
    let path = format!("/api/v1/namespaces/{}/configmaps", api.namespace().await);
    api.post(&path, config_map("a")).await.is(201);
    let path = format!("{path}/a");
    let with_version = |version: &str, value: &str| {
        let mut object = config_map("a");
        object["metadata"]["resourceVersion"] = json!(version);
        object["data"] = json!({"k": value});
        object
    };
    for zero in ["0", "00"] {
        let replaced = api.put(&path, with_version(zero, zero)).await.is(200);
        assert_eq!(replaced.at("/data/k"), zero);
        let patched = api.patch(&path, MERGE_PATCH, with_version(zero, "patched")).await.is(200);
        assert_eq!(patched.at("/data/k"), "patched");
    }
    for (version, why) in
        [("x", "invalid syntax"), ("-1", "invalid syntax"), ("99999999999999999999", "value out of range")]
    {
        let refused = api.put(&path, with_version(version, "no")).await.is(500);
        assert_eq!(refused.text_at("/message"), format!("strconv.ParseUint: parsing \"{version}\": {why}"));
    }
    api.put(&path, with_version("1", "no")).await.is(409);
}

#[tokio::test]
async fn an_update_of_fields_that_an_update_cannot_change_stores_nothing() {
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
async fn an_update_or_apply_that_creates_an_object_keeps_no_marks_of_a_deletion() {
    let api = Api::start();
    let ns = api.namespace().await;
    let metadata =
        json!({"name": "a", "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata});
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let maps = format!("/api/v1/namespaces/{ns}/configmaps/a?fieldManager=one");
    let applied = api.patch(&maps, "application/apply-patch+yaml", map).await.is(201);
    for created in [api.put(&leases, lease).await.is(201), applied] {
        assert_eq!(created.at("/metadata/deletionTimestamp"), Value::Null);
        assert_eq!(created.at("/metadata/deletionGracePeriodSeconds"), Value::Null);
    }
}

#[tokio::test]
async fn an_error_about_a_field_that_is_declared_immutable_shows_no_value() {
    let api = Api::start();
    let ns = api.namespace().await;
    let name = format!("a-{}", api.id);
    let class = json!({"metadata": {"name": name}, "provisioner": "a", "volumeBindingMode": "Immediate"});
    let slice = json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": []});
    let runtime = json!({"metadata": {"name": name}, "handler": "a"});
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices");
    let mut seen = Vec::new();
    for (path, object, change) in [
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            class,
            json!({"volumeBindingMode": "WaitForFirstConsumer"}),
        ),
        ("/apis/node.k8s.io/v1/runtimeclasses", runtime, json!({"handler": "b"})),
        (slices.as_str(), slice, json!({"addressType": "IPv6"})),
    ] {
        api.post(path, object).await.is(201);
        let path = format!("{path}/{name}");
        let refused = api.patch(&path, MERGE_PATCH, change).await.is(422);
        seen.push(format!(
            "{} {}",
            refused.text_at("/details/causes/0/field"),
            refused.text_at("/details/causes/0/message")
        ));
        api.delete(&path).await.is(200);
    }
    expect![[r#"
        volumeBindingMode Invalid value: null: field is immutable
        handler Invalid value: null: field is immutable
        addressType Invalid value: null: field is immutable"#]]
    .assert_eq(&seen.join("\n"));
}

#[tokio::test]
async fn an_owner_that_is_given_twice_is_stored_once() {
    let api = Api::start();
    let path = format!("/api/v1/namespaces/{}/configmaps", api.namespace().await);
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": format!("uid-{name}")});
    let (a, b) = (owner("a"), owner("b"));
    let mut controller = a.clone();
    controller["controller"] = json!(false);
    let object = |owners: Value| json!({"metadata": {"name": "x", "ownerReferences": owners}});
    let mut seen = Vec::new();
    let mut see = |what: &str, reply: Reply| {
        let names = reply.at("/metadata/ownerReferences").as_array().cloned().unwrap_or_default();
        let names: Vec<_> = names.iter().map(|owner| owner["name"].as_str().unwrap_or_default()).collect();
        let warnings = reply.warnings().into_iter().filter(|warning| !warning.starts_with(NOT_ENFORCED));
        seen.push(format!("{what}: {} {names:?}", reply.code));
        seen.extend(warnings);
    };
    see("create", api.post(&path, object(json!([a, b, a, a, b]))).await);
    let path = format!("{path}/x");
    see("update", api.put(&path, object(json!([a, a]))).await);
    // Only equal references are duplicates.
    see("other", api.put(&path, object(json!([a, controller]))).await);
    see("merge patch", api.patch(&path, MERGE_PATCH, object(json!([a, a, b]))).await);
    let add = json!([{"op": "add", "path": "/metadata/ownerReferences/-", "value": b}]);
    see("JSON patch", api.patch(&path, JSON_PATCH, add).await);
    see("strategic patch", api.patch(&path, STRATEGIC_PATCH, object(json!([a, a, b]))).await);
    expect![[r#"
        create: 201 ["a", "b"]
        299 - ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: uid-a, uid-a, uid-b"
        update: 200 ["a"]
        299 - ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: uid-a"
        other: 200 ["a", "a"]
        merge patch: 200 ["a", "b"]
        299 - ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: uid-a"
        JSON patch: 200 ["a", "b"]
        299 - ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: uid-b"
        strategic patch: 200 ["a", "b"]
    "#]].assert_eq(&lines(&seen));
    let managers = api.get(&path).await.at("/metadata/managedFields").to_string();
    assert!(managers.contains("uid-a") && managers.contains("uid-b"), "{managers}");
}

#[tokio::test]
async fn an_object_that_only_its_managers_make_too_large_loses_the_managers() {
    let api = Api::start();
    let all = format!("/api/v1/namespaces/{}/configmaps", api.namespace().await);
    let path = format!("{all}/x");
    let data: serde_json::Map<String, Value> =
        (0..40_000).map(|number| (format!("key{number:06}"), "twelve-bytes".into())).collect();
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data
    });
    let apply = api.request(Method::PATCH, &format!("{path}?fieldManager=m"));
    let applied = apply.body("application/apply-patch+yaml", object.to_string()).send().await.is(500);
    assert_eq!(applied.text_at("/message"), "etcdserver: request is too large");
    let has_no_managers = |reply: Reply| assert!(reply.at("/metadata/managedFields").is_null());
    has_no_managers(api.post(&all, object.clone()).await.is(201));
    object["metadata"]["labels"] = json!({"of": "test"});
    has_no_managers(api.put(&path, object).await.is(200));
    let patch = json!({"metadata": {"labels": {"of": "other"}}});
    has_no_managers(api.patch(&path, MERGE_PATCH, patch).await.is(200));
    let stored = api.get(&path).await;
    assert_eq!(stored.at("/metadata/labels/of"), "other");
    assert_eq!(stored.at("/data/key039999"), "twelve-bytes");
    has_no_managers(stored);
}
