//! Deleting one object, and many.

use std::time::{Duration, Instant};

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use windlass_apiserver::Server;
use windlass_patience::stretched;

use crate::fixtures::{config_map, labelled, pod, secret, widget, widgets_path};
use crate::harness::{Api, MERGE_PATCH, lines};

#[tokio::test]
async fn a_delete_answers_with_a_status_that_names_what_is_gone() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    api.delete(&format!("{path}/a")).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "details": {
            "kind": "configmaps",
            "name": "a",
            "uid": "UID"
          },
          "kind": "Status",
          "metadata": {},
          "status": "Success"
        }"#]]);
    api.get(&format!("{path}/a")).await.is(404);
}

#[tokio::test]
async fn a_delete_of_a_custom_resource_answers_with_a_status_too() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    api.delete(&format!("{path}/a")).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "details": {
            "group": "ID.example.com",
            "kind": "widgets",
            "name": "a",
            "uid": "UID"
          },
          "kind": "Status",
          "metadata": {},
          "status": "Success"
        }"#]]);
}

#[tokio::test]
async fn some_kinds_answer_with_the_object() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let created = api.post(&path, pod("a")).await.is(201);
    let deleted = api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(deleted.text_at("/kind"), "Pod");
    assert_eq!(deleted.at("/metadata/uid"), created.at("/metadata/uid"));
    api.get(&format!("{path}/a")).await.is(404);
}

#[tokio::test]
async fn a_finalizer_keeps_the_object_until_it_is_taken_off() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = json!(["example.com/guard"]);
    let created = api.post(&path, body).await.is(201);
    let deleted = api.delete(&format!("{path}/a")).await;
    deleted.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "v"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "deletionGracePeriodSeconds": 0,
            "deletionTimestamp": "TIME",
            "finalizers": [
              "example.com/guard"
            ],
            "managedFields": [
              "api-test Update v1: {'f:data':{'.':{},'f:k':{}},'f:metadata':{'f:finalizers':{'.':{},'v:\\'example.com/guard\\'':{}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    assert!(deleted.version() > created.version());
    let again = api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(again.version(), deleted.version(), "a second delete changes nothing");
    let released =
        api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await;
    released.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "data": {
            "k": "v"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "deletionGracePeriodSeconds": 0,
            "deletionTimestamp": "TIME",
            "managedFields": [
              "api-test Update v1: {'f:data':{'.':{},'f:k':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    api.get(&format!("{path}/a")).await.is(404);
}

#[tokio::test]
async fn no_finalizer_is_added_to_what_is_being_deleted() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = json!(["example.com/guard"]);
    api.post(&path, body).await.is(201);
    api.delete(&format!("{path}/a")).await.is(200);
    let more = json!({"metadata": {"finalizers": ["example.com/guard", "example.com/more"]}});
    api.patch(&format!("{path}/a"), MERGE_PATCH, more).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}
        kind="ConfigMap" name="a"
        - FieldValueForbidden metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}"#]]);
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"data": {"k": "late"}})).await.is(200);
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"metadata": {"finalizers": []}})).await.is(200);
}

#[tokio::test]
async fn preconditions_guard_a_delete() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await.is(201);
    let uid = created.text_at("/metadata/uid");
    let wrong = json!({"preconditions": {"uid": "b6d2d2b4-0000-0000-0000-000000000000"}});
    let refused = api.delete_with(&format!("{path}/a"), wrong).await;
    refused.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (UID) does not match the UID in record (UID). The object might have been deleted and then recreated
        kind="ConfigMap" name="a""#]]);
    let stale = json!({"preconditions": {"resourceVersion": "1"}});
    let refused = api.delete_with(&format!("{path}/a"), stale).await;
    assert_eq!(refused.text_at("/reason"), "Conflict");
    let version = created.text_at("/metadata/resourceVersion");
    let message = refused.text_at("/message").replace(&version, "RV");
    expect![[r#"Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (RV). The object might have been modified"#]].assert_eq(&message);
    let right = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid, "resourceVersion": version}});
    api.delete_with(&format!("{path}/a"), right).await.is(200);
}

#[tokio::test]
async fn preconditions_may_be_in_the_query() {
    let api = Api::start();
    let ns = api.namespace().await;
    let all = format!("/api/v1/namespaces/{ns}/configmaps");
    let path = format!("{all}/a");
    api.post(&all, json!({"metadata": {"name": "a", "labels": {"of": "test"}}})).await.is(201);
    let selected = format!("{all}?labelSelector=of%3Dtest");
    let revision = regex::Regex::new(r"in record \([^)]*\)").unwrap();
    let mut seen = Vec::new();
    for (path, query) in [
        (&path, "?uid=other&uid="),
        (&path, "?resourceVersion=1"),
        (&path, "?uid=other&ignoreStoreReadErrorWithClusterBreakingPotential=true"),
        (&selected, "&uid=other"),
        // The resource version selects the list, and is the precondition of each object, too.
        (&selected, "&resourceVersion=0"),
    ] {
        let reply = api.delete(&format!("{path}{query}")).await.to_string();
        seen.push(format!("{query}: {}", revision.replace_all(&reply, "in record (IT)")));
    }
    expect![[r#"
        ?uid=other&uid=: 409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in record (IT). The object might have been deleted and then recreated
        kind="ConfigMap" name="a"
        ?resourceVersion=1: 409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (IT). The object might have been modified
        kind="ConfigMap" name="a"
        ?uid=other&ignoreStoreReadErrorWithClusterBreakingPotential=true: 422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .preconditions
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueInvalid ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .preconditions
        &uid=other: 409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in record (IT). The object might have been deleted and then recreated
        kind="ConfigMap" name="a"
        &resourceVersion=0: 409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (0) does not match the ResourceVersion in record (IT). The object might have been modified
        kind="ConfigMap" name="a"
    "#]].assert_eq(&lines(&seen));
    api.get(&path).await.is(200);
    // A body replaces the options of the query.
    api.delete_with(&format!("{path}?uid=other"), json!({})).await.is(200);
}

#[tokio::test]
async fn the_propagation_policy_becomes_a_finalizer() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    for (policy, finalizers) in [
        ("Foreground", json!(["foregroundDeletion", "example.com/guard"])),
        ("Orphan", json!(["orphan", "example.com/guard"])),
        ("Background", json!(["example.com/guard"])),
    ] {
        let mut body = widget(&api, &policy.to_lowercase());
        // An extra finalizer: no garbage collector is done before the test looks.
        body["metadata"]["finalizers"] = json!(["example.com/guard"]);
        api.post(&path, body).await.is(201);
        let path = format!("{path}/{}", policy.to_lowercase());
        let deleted = api.delete_with(&path, json!({"propagationPolicy": policy})).await.is(200);
        let mut shown = deleted.at("/metadata/finalizers").as_array().unwrap().clone();
        let mut wanted = finalizers.as_array().unwrap().clone();
        shown.sort_by_key(ToString::to_string);
        wanted.sort_by_key(ToString::to_string);
        assert_eq!(shown, wanted, "{policy}");
        assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 0);
        api.patch(&path, MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
    }
}

#[tokio::test]
async fn the_propagation_policy_may_be_in_the_query() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = widget(&api, "a");
    body["metadata"]["finalizers"] = json!(["example.com/guard"]);
    api.post(&path, body).await.is(201);
    let deleted = api.delete(&format!("{path}/a?propagationPolicy=Orphan")).await.is(200);
    assert!(deleted.at("/metadata/finalizers").as_array().unwrap().contains(&json!("orphan")));
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
}

#[tokio::test]
async fn delete_options_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let path = format!("{path}/a");
    api.delete_with(&path, json!({"propagationPolicy": "Sideways"})).await.shows(expect![[r#"
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueNotSupported propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil""#]]);
    api.delete_with(&path, json!({"propagationPolicy": "Orphan", "orphanDependents": true}))
        .await
        .shows(expect![[r#"
            422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set
            group="meta.k8s.io" kind="DeleteOptions"
            - FieldValueInvalid propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#]]);
    api.delete_with(&path, json!({"dryRun": ["Some"]})).await.shows(expect![[r#"
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueNotSupported dryRun: Unsupported value: ["Some"]: supported values: "All""#]]);
    api.delete_with(&path, json!({"kind": "Pod", "apiVersion": "v1"})).await.shows(expect![[r#"400 BadRequest: no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#]]);
    api.delete_with(&path, json!({"gracePeriodSeconds": "soon"})).await.shows(expect!["400 BadRequest: json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"]);
    api.delete(&format!("{path}?gracePeriodSeconds=soon"))
        .await
        .shows(expect![[r#"400 BadRequest: strconv.ParseInt: parsing "soon": invalid syntax"#]]);
    api.get(&path).await.is(200);
}

#[tokio::test]
async fn a_delete_option_of_a_wrong_type_deletes_nothing() {
    let api = Api::start();
    let ns = api.namespace().await;
    let all = format!("/api/v1/namespaces/{ns}/configmaps");
    let path = format!("{all}/a");
    api.post(&all, config_map("a")).await.is(201);
    let mut seen = Vec::new();
    for options in [
        json!({"preconditions": {"resourceVersion": 123}}),
        json!({"preconditions": {"uid": 7}}),
        json!({"preconditions": []}),
        json!({"dryRun": [null]}),
        json!({"dryRun": ["All", 1]}),
        json!({"dryRun": "All"}),
        json!({"gracePeriodSeconds": 1.5}),
        json!({"orphanDependents": "true"}),
        json!({"propagationPolicy": {}}),
        // Go reports the first error.
        json!({"dryRun": [1], "preconditions": {"uid": 1}}),
    ] {
        for path in [&path, &all] {
            let reply = api.delete_with(path, options.clone()).await;
            seen.push(format!("{} {}", reply.code, reply.text_at("/message")));
        }
        assert_eq!(seen.pop(), seen.last().cloned(), "the collection and the object differ");
    }
    expect![[r#"
        400 json: cannot unmarshal number into Go struct field Preconditions.preconditions.resourceVersion of type string
        400 json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID
        400 json: cannot unmarshal array into Go struct field DeleteOptions.preconditions of type v1.Preconditions
        422 DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All"
        400 json: cannot unmarshal number into Go struct field DeleteOptions.dryRun of type string
        400 json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string
        400 json: cannot unmarshal number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64
        400 json: cannot unmarshal string into Go struct field DeleteOptions.orphanDependents of type bool
        400 json: cannot unmarshal object into Go struct field DeleteOptions.propagationPolicy of type v1.DeletionPropagation
        400 json: cannot unmarshal number into Go struct field DeleteOptions.dryRun of type string
    "#]].assert_eq(&lines(&seen));
    for (yaml, why) in [
        (
            "preconditions:\n  uid: 7\n",
            "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
        ),
        (
            "dryRun: [true]\n",
            "json: cannot unmarshal bool into Go struct field DeleteOptions.dryRun of type string",
        ),
    ] {
        let reply = api.request(Method::DELETE, &path).body("application/yaml", yaml).send().await;
        assert_eq!(reply.is(400).text_at("/message"), why);
    }
    api.get(&path).await.is(200);
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&pods, pod("p")).await.is(201);
    let evict = async |options: Value| {
        let eviction = json!({
            "kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}, "deleteOptions": options
        });
        api.post(&format!("{pods}/p/eviction"), eviction).await
    };
    evict(json!({"dryRun": [null]})).await.is(422);
    evict(json!({"preconditions": {"uid": 7}})).await.is(400);
    api.get(&format!("{pods}/p")).await.is(200);
}

#[tokio::test]
async fn a_scheduled_pod_gets_time_to_end() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let mut body = pod("a");
    body["spec"]["nodeName"] = json!(format!("node-{}", api.id));
    let created = api.post(&path, body).await.is(201);
    let deleted = api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 30);
    assert!(deleted.at("/metadata/deletionTimestamp").is_string());
    assert_eq!(deleted.at("/metadata/generation"), created.at("/metadata/generation").as_i64().unwrap() + 1);
    let sooner = api.delete_with(&format!("{path}/a"), json!({"gracePeriodSeconds": 5})).await.is(200);
    assert_eq!(sooner.at("/metadata/deletionGracePeriodSeconds"), 5);
    let later = api.delete_with(&format!("{path}/a"), json!({"gracePeriodSeconds": 50})).await.is(200);
    assert_eq!(later.at("/metadata/deletionGracePeriodSeconds"), 5, "the time only shrinks");
    api.delete_with(&format!("{path}/a"), json!({"gracePeriodSeconds": 0})).await.is(200);
    api.get(&format!("{path}/a")).await.is(404);
}

#[tokio::test]
async fn a_pod_that_no_node_has_goes_at_once() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, pod("a")).await.is(201);
    let deleted = api.delete_with(&format!("{path}/a"), json!({"gracePeriodSeconds": 30})).await.is(200);
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 0);
    api.get(&format!("{path}/a")).await.is(404);
}

#[tokio::test]
async fn a_collection_is_deleted_as_selected() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    for name in ["a", "b"] {
        api.post(&path, labelled(secret(name), json!({"drop": "yes"}))).await.is(201);
    }
    for name in ["c", "d"] {
        api.post(&path, secret(name)).await.is(201);
    }
    let deleted = api.delete(&format!("{path}?labelSelector=drop%3Dyes")).await;
    assert_eq!(deleted.names(), ["a", "b"]);
    deleted.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "items": [
            {
              "metadata": {
                "creationTimestamp": "TIME",
                "labels": {
                  "drop": "yes"
                },
                "managedFields": [
                  "api-test Update v1: {'f:metadata':{'f:labels':{'.':{},'f:drop':{}}},'f:type':{}}"
                ],
                "name": "a",
                "namespace": "ns-ID",
                "resourceVersion": "RV",
                "uid": "UID"
              },
              "type": "Opaque"
            },
            {
              "metadata": {
                "creationTimestamp": "TIME",
                "labels": {
                  "drop": "yes"
                },
                "managedFields": [
                  "api-test Update v1: {'f:metadata':{'f:labels':{'.':{},'f:drop':{}}},'f:type':{}}"
                ],
                "name": "b",
                "namespace": "ns-ID",
                "resourceVersion": "RV",
                "uid": "UID"
              },
              "type": "Opaque"
            }
          ],
          "kind": "SecretList",
          "metadata": {
            "resourceVersion": "RV"
          }
        }"#]]);
    api.delete(&format!("{path}?fieldSelector=metadata.name%3Dc")).await.is(200);
    assert_eq!(api.get(&path).await.names(), ["d"]);
}

#[tokio::test]
async fn a_collection_of_custom_resources_is_deleted() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    for name in ["a", "b"] {
        api.post(&path, widget(&api, name)).await.is(201);
    }
    let deleted = api.delete_with(&path, json!({"propagationPolicy": "Background"})).await.is(200);
    assert_eq!(deleted.text_at("/kind"), "WidgetList");
    assert_eq!(deleted.names(), ["a", "b"]);
    assert_eq!(api.get(&path).await.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_collection_of_what_cannot_be_deleted_so_is_refused() {
    let api = Api::start();
    api.delete("/api/v1/namespaces").await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
}

#[tokio::test]
async fn a_name_can_be_used_again_and_gets_a_new_uid() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let first = api.post(&path, config_map("a")).await.is(201);
    api.delete(&format!("{path}/a")).await.is(200);
    let second = api.post(&path, config_map("a")).await.is(201);
    assert_ne!(first.at("/metadata/uid"), second.at("/metadata/uid"));
    assert!(second.version() > first.version());
}

fn job(name: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": {"spec": {
        "containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never"}}}})
}

#[tokio::test]
async fn jobs_leave_their_pods_behind_unless_told_otherwise() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/batch/v1/namespaces/{ns}/jobs");
    api.post(&path, job("a")).await.is(201);
    let deleted = api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(deleted.text_at("/kind"), "Job");
    assert_eq!(deleted.at("/metadata/finalizers"), json!(["orphan"]));
    assert_eq!(deleted.at("/metadata/generation"), json!(2));
    let warned = deleted.warnings().into_iter().find(|warning| warning.contains("child pods")).unwrap();
    assert!(warned.contains("child pods are preserved by default when jobs are deleted"), "{warned}");
    // The garbage collector of a real control plane may have removed the finalizer by now.
    if !api.is_shared() {
        api.post(&path, job("a")).await.shows(expect![[r#"
            409 AlreadyExists: object is being deleted: jobs.batch "a" already exists
            group="batch" kind="jobs" name="a""#]]);
    }
    api.post(&path, job("b")).await.is(201);
    let deleted = api.delete_with(&format!("{path}/b"), json!({"propagationPolicy": "Background"})).await;
    assert!(deleted.warnings().iter().all(|warning| !warning.contains("child pods")));
    api.get(&format!("{path}/b")).await.is(404);
}

#[tokio::test]
async fn replication_controllers_leave_their_pods_behind_too() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/replicationcontrollers");
    let controller = json!({"metadata": {"name": "a"}, "spec": {"replicas": 0, "selector": {"app": "a"}, "template": {
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}}});
    api.post(&path, controller).await.is(201);
    let deleted = api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(deleted.at("/metadata/finalizers"), json!(["orphan"]));
}

#[tokio::test]
async fn delete_options_in_the_query_count_only_without_a_body() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let missing = format!("{path}/a?propagationPolicy=Odd");
    api.delete(&missing).await.shows(expect![[r#"
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Odd": supported values: "Foreground", "Background", "Orphan", "nil"
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueNotSupported propagationPolicy: Unsupported value: "Odd": supported values: "Foreground", "Background", "Orphan", "nil""#]]);
    api.delete_with(&missing, json!({"preconditions": {}})).await.is(404);
    api.delete_with(&missing, json!([])).await.shows(expect![[r#"400 BadRequest: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#]]);
    api.post(&path, config_map("a")).await.is(201);
    api.delete_with(&format!("{path}/a?dryRun=All"), json!({"gracePeriodSeconds": 1})).await.is(200);
    api.get(&format!("{path}/a")).await.is(404);
}

#[tokio::test]
async fn a_deleted_collection_is_listed_as_it_was_before() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    let mut held = secret("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(&path, held).await.is(201);
    let request = api.request(Method::DELETE, &path);
    let table = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let deleted = request.accept(table).send().await.is(200);
    assert_eq!(deleted.names(), ["a"]);
    assert_eq!(deleted.text_at("/kind"), "PartialObjectMetadataList");
    assert_eq!(deleted.at("/items/0/metadata/deletionTimestamp"), Value::Null);
    assert_ne!(api.get(&format!("{path}/a")).await.at("/metadata/deletionTimestamp"), Value::Null);
    let patch = json!({"metadata": {"finalizers": null}});
    api.patch(&format!("{path}/a"), MERGE_PATCH, patch).await.is(200);
}

#[tokio::test]
async fn an_object_with_many_finalizers_is_deleted_quickly() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = (0..20_000).map(|number| json!(format!("a/{number}"))).collect();
    api.post(&path, body).await.is(201);
    let start = Instant::now();
    let path = format!("{path}/a");
    api.delete(&path).await.is(200);
    api.patch(&path, MERGE_PATCH, json!({"data": {"x": "y"}})).await.is(200);
    assert!(start.elapsed() < stretched(Duration::from_secs(5)), "{:?}", start.elapsed());
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
}

#[tokio::test]
async fn a_grace_period_beyond_the_end_of_time_is_long() {
    let api = Api::start();
    if api.is_shared() {
        // Its times overflow into the past.
        return;
    }
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    for (name, grace) in [("a", 1_000_000_000_000), ("b", i64::MAX)] {
        let mut body = pod(name);
        body["spec"]["nodeName"] = json!("n");
        api.post(&path, body).await.is(201);
        let path = format!("{path}/{name}");
        let pending = api.delete_with(&path, json!({"gracePeriodSeconds": grace})).await.is(200);
        assert_eq!(pending.at("/metadata/deletionGracePeriodSeconds"), grace);
        let sooner = api.delete_with(&path, json!({"gracePeriodSeconds": 5})).await.is(200);
        assert_eq!(sooner.at("/metadata/deletionGracePeriodSeconds"), 5);
        api.delete_with(&path, json!({"gracePeriodSeconds": 0})).await.is(200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_seen_terminating_before_it_is_removed() {
    // Always embedded: on the real server the time between its two writes is not certain.
    let api = Api::embedded(&Server::builder().build().unwrap());
    let ns = api.namespace().await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&pods, pod("a")).await.is(201);
    let mut watch = api.watch(&pods).await;
    assert_eq!(watch.next().await.kind, "ADDED");
    let path = format!("{pods}/a");
    let deleted = async { api.delete(&path).await.is(200) };
    let seen = async {
        assert_eq!(watch.next().await.kind, "MODIFIED");
        api.get(&path).await.is(200).at("/metadata/deletionGracePeriodSeconds")
    };
    let (_, grace) = tokio::join!(deleted, seen);
    assert_eq!(grace, 0);
    assert_eq!(watch.next().await.kind, "DELETED");
}

#[tokio::test(start_paused = true)]
async fn a_graceful_deletion_spares_the_successor() {
    // Always embedded: on the real server the time between its two writes is not certain.
    let api = Api::embedded(&Server::builder().build().unwrap());
    let ns = api.namespace().await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let path = format!("{pods}/a");
    let first = api.post(&pods, pod("a")).await.is(201);
    let mut watch = api.watch(&pods).await;
    assert_eq!(watch.next().await.kind, "ADDED");
    let options = json!({"preconditions": {"uid": first.text_at("/metadata/uid")}});
    let deleted = async { api.delete_with(&path, options).await.is(200) };
    let replaced = async {
        assert_eq!(watch.next().await.kind, "MODIFIED");
        api.delete_with(&path, json!({"gracePeriodSeconds": 0})).await.is(200);
        api.post(&pods, pod("a")).await.is(201)
    };
    let (deleted, successor) = tokio::join!(deleted, replaced);
    assert_eq!(deleted.at("/metadata/uid"), first.at("/metadata/uid"));
    assert_eq!(api.get(&path).await.is(200).at("/metadata/uid"), successor.at("/metadata/uid"));
}

#[tokio::test]
async fn a_deletion_goes_on_when_its_client_leaves() {
    let api = Api::start_over_tls();
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    for number in 0..20_u64 {
        let path = format!("{pods}/p{number}");
        api.post(&pods, pod(&format!("p{number}"))).await.is(201);
        let mut connection = api.connect().await;
        let head = format!("DELETE {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.flush().await.unwrap();
        tokio::time::sleep(Duration::from_micros(number * 400)).await;
        drop(connection);
    }
    let terminating = |list: Value| {
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_string()).count()
    };
    let end = Instant::now() + stretched(Duration::from_secs(10));
    while terminating(api.get(&pods).await.at("")) > 0 {
        assert!(Instant::now() < end, "pods stay terminating");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn events_have_no_dependents_to_wait_for() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/events");
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "x"}, "involvedObject": {"namespace": ns}, "type": "Normal"
    });
    api.post(&path, event).await.is(201);
    api.delete(&format!("{path}/x?propagationPolicy=Foreground")).await.is(200);
    api.get(&format!("{path}/x")).await.is(404);
}
