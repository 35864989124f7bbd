//! Create, get and list single objects.

use expect_test::expect;
use serde_json::json;

use crate::fixtures::{config_map, secret};
use crate::harness::{Api, MERGE_PATCH};

#[tokio::test]
async fn a_created_object_comes_back_with_what_the_server_adds() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await;
    created.shows(expect![[r#"
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
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    let got = api.get(&format!("{path}/a")).await.is(200);
    assert_eq!(got.json(), created.json());
}

#[tokio::test]
async fn what_a_client_may_not_set_is_overwritten() {
    let api = Api::start();
    let ns = api.namespace().await;
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "/x",
            "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5
        }
    });
    api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), body).await.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 7,
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
}

#[tokio::test]
async fn a_resource_version_must_not_be_set_on_create() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut body = config_map("a");
    body["metadata"]["resourceVersion"] = json!("5");
    api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), body)
        .await
        .shows(expect!["500 -: resourceVersion should not be set on objects to be created"]);
}

#[tokio::test]
async fn an_object_that_exists_is_not_created_again() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    api.post(&path, config_map("a")).await.shows(expect![[r#"
        409 AlreadyExists: configmaps "a" already exists
        kind="configmaps" name="a""#]]);
}

#[tokio::test]
async fn an_object_that_is_not_there_is_not_found() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.get(&format!("/api/v1/namespaces/{ns}/configmaps/none")).await.shows(expect![[r#"
        404 NotFound: configmaps "none" not found
        kind="configmaps" name="none""#]]);
    api.delete(&format!("/api/v1/namespaces/{ns}/configmaps/none")).await.shows(expect![[r#"
        404 NotFound: configmaps "none" not found
        kind="configmaps" name="none""#]]);
    api.get(&format!("/apis/apps/v1/namespaces/{ns}/deployments/none")).await.shows(expect![[r#"
        404 NotFound: deployments.apps "none" not found
        group="apps" kind="deployments" name="none""#]]);
    api.get("/api/v1/namespaces/no-such-namespace").await.shows(expect![[r#"
        404 NotFound: namespaces "no-such-namespace" not found
        kind="namespaces" name="no-such-namespace""#]]);
}

#[tokio::test]
async fn nothing_is_created_in_a_namespace_that_is_not_there() {
    let api = Api::start();
    api.post(&format!("/api/v1/namespaces/none-{}/configmaps", api.id), config_map("a")).await.shows(
        expect![[r#"
            404 NotFound: namespaces "none-ID" not found
            kind="namespaces" name="none-ID""#]],
    );
    let list = api.get(&format!("/api/v1/namespaces/none-{}/configmaps", api.id)).await.is(200);
    assert_eq!(list.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_generated_name_has_five_random_letters() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}});
    let first = api.post(&path, body.clone()).await.is(201).text_at("/metadata/name");
    let second = api.post(&path, body).await.is(201);
    assert_eq!(second.text_at("/metadata/generateName"), "made-");
    let second = second.text_at("/metadata/name");
    assert_ne!(first, second);
    let suffix = second.strip_prefix("made-").expect("the prefix");
    assert_eq!(suffix.len(), 5);
    assert!(suffix.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)), "{suffix}");
}

#[tokio::test]
async fn a_name_beats_a_generated_name() {
    let api = Api::start();
    let ns = api.namespace().await;
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "generateName": "made-"}});
    let created = api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), body).await.is(201);
    assert_eq!(created.text_at("/metadata/name"), "a");
}

#[tokio::test]
async fn a_long_generated_name_is_cut_to_fit() {
    let api = Api::start();
    let ns = api.namespace().await;
    let prefix = "a".repeat(250);
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": prefix}});
    let created = api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), body).await.is(201);
    assert_eq!(created.text_at("/metadata/name").len(), 63);
}

#[tokio::test]
async fn names_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, json!({"apiVersion": "v1", "kind": "ConfigMap"})).await.shows(expect![[r#"
        422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
        kind="ConfigMap"
        - FieldValueRequired metadata.name: Required value: name or generateName is required"#]]);
    api.post(&path, config_map("Not_A_Name")).await.shows(expect![[r#"
        422 Invalid: ConfigMap "Not_A_Name" is invalid: metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        kind="ConfigMap" name="Not_A_Name"
        - FieldValueInvalid metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]]);
    api.post(&path, config_map(&"a".repeat(254))).await.shows(expect![[r#"
        422 Invalid: ConfigMap "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" is invalid: metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 253 characters
        kind="ConfigMap" name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        - FieldValueInvalid metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 253 characters"#]]);
    api.post(&path, config_map("a/b")).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a/b" is invalid: metadata.name: Invalid value: "a/b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        kind="ConfigMap" name="a/b"
        - FieldValueInvalid metadata.name: Invalid value: "a/b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]]);
    api.post(&path, config_map("..")).await.shows(expect![[r#"
        422 Invalid: ConfigMap ".." is invalid: metadata.name: Invalid value: "..": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        kind="ConfigMap" name=".."
        - FieldValueInvalid metadata.name: Invalid value: "..": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]]);
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}});
    api.post("/api/v1/namespaces", body).await.shows(expect![[r#"
        422 Invalid: Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots
        kind="Namespace" name="a.b"
        - FieldValueInvalid metadata.name: Invalid value: "a.b": must not contain dots"#]]);
}

#[tokio::test]
async fn labels_and_annotations_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut body = config_map("a");
    body["metadata"]["labels"] = json!({"bad key": "bad value"});
    body["metadata"]["annotations"] = json!({"x/": "v"});
    api.post(&path, body).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: [as below]
        kind="ConfigMap" name="a"
        - FieldValueInvalid metadata.annotations: Invalid value: "x/": name part must be non-empty
        - FieldValueInvalid metadata.annotations: Invalid value: "x/": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid metadata.labels: Invalid value: "bad key": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid metadata.labels: Invalid value: "bad value": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#]]);
    let mut body = config_map("a");
    body["metadata"]["labels"] = json!({"a/b/c": "v"});
    body["metadata"]["annotations"] = json!({"UPPER/x": "v"});
    api.post(&path, body).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: metadata.labels: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
        kind="ConfigMap" name="a"
        - FieldValueInvalid metadata.labels: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"#]]);
    let mut body = config_map("a");
    body["metadata"]["labels"] = json!({"k": "v".repeat(64)});
    body["metadata"]["annotations"] = json!({"k".repeat(64): "v".repeat(256 * 1024)});
    api.post(&path, body).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: [as below]
        kind="ConfigMap" name="a"
        - FieldValueInvalid metadata.annotations: Invalid value: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk": name part must be no more than 63 bytes
        - FieldValueInvalid metadata.labels: Invalid value: "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv": must be no more than 63 bytes
        - FieldValueTooLong metadata.annotations: Too long: may not be more than 262144 bytes"#]]);
}

#[tokio::test]
async fn finalizers_and_owners_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = json!(["plain", "bad name/x"]);
    body["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": "", "uid": ""}]);
    api.post(&path, body).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: [as below]
        kind="ConfigMap" name="a"
        - FieldValueInvalid metadata.finalizers: Invalid value: "bad name/x": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid metadata.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified
        - FieldValueRequired metadata.ownerReferences[0].name: Required value: must not be empty
        - FieldValueRequired metadata.ownerReferences[0].uid: Required value: must not be empty"#]]);
    let mut body = config_map("a");
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": true});
    body["metadata"]["ownerReferences"] = json!([owner("one"), owner("two")]);
    let refused = api.post(&path, body).await.is(422);
    let end = "Only one reference can have Controller set to true. Found \"true\" in references for Pod/one and Pod/two";
    assert!(refused.text_at("/message").ends_with(end), "{refused}");
}

#[tokio::test]
async fn a_list_is_in_order_of_keys_and_has_a_resource_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.get(&path).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "items": [],
          "kind": "SecretList",
          "metadata": {
            "resourceVersion": "RV"
          }
        }"#]]);
    for name in ["b", "c", "a"] {
        api.post(&path, secret(name)).await.is(201);
    }
    let list = api.get(&path).await;
    assert_eq!(list.names(), ["a", "b", "c"]);
    let newest = api.get(&format!("{path}/a")).await.version();
    assert!(list.version() >= newest);
    list.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "items": [
            {
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
            },
            {
              "metadata": {
                "creationTimestamp": "TIME",
                "managedFields": [
                  "api-test Update v1: {'f:type':{}}"
                ],
                "name": "b",
                "namespace": "ns-ID",
                "resourceVersion": "RV",
                "uid": "UID"
              },
              "type": "Opaque"
            },
            {
              "metadata": {
                "creationTimestamp": "TIME",
                "managedFields": [
                  "api-test Update v1: {'f:type':{}}"
                ],
                "name": "c",
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
}

#[tokio::test]
async fn a_list_of_all_namespaces_goes_by_namespace_then_name() {
    let api = Api::start();
    let label = json!({"test": api.id});
    for (namespace, name) in [("b", "x"), ("a", "y"), ("a", "x")] {
        let namespace = format!("{namespace}-{}", api.id);
        if api.get(&format!("/api/v1/namespaces/{namespace}")).await.code == 404 {
            api.namespace_named(&namespace).await;
        }
        let secret = crate::fixtures::labelled(secret(name), label.clone());
        api.post(&format!("/api/v1/namespaces/{namespace}/secrets"), secret).await.is(201);
    }
    let list = api.get(&format!("/api/v1/secrets?labelSelector=test%3D{}", api.id)).await.is(200).json();
    let items = list["items"].as_array().unwrap().iter();
    let keys: Vec<String> = items
        .map(|item| {
            format!(
                "{}/{}",
                &item["metadata"]["namespace"].as_str().unwrap()[..1],
                item["metadata"]["name"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(keys, ["a/x", "a/y", "b/x"]);
}

#[tokio::test]
async fn a_get_may_ask_for_any_version_but_not_for_one_of_the_future() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    let version = api.post(&path, secret("a")).await.is(201).version();
    let any = api.get(&format!("{path}/a?resourceVersion={version}")).await.is(200);
    assert_eq!(any.version(), version);
    api.get(&format!("{path}/a?resourceVersion=x")).await.shows(expect![[
        r#"500 -: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#
    ]]);
    api.get(&format!("{path}/a?resourceVersion=9000000000000000")).await.shows(expect![[r#"
        504 Timeout: Timeout: Too large resource version: 9000000000000000, current: RV
        retryAfterSeconds=1
        - ResourceVersionTooLarge -: Too large resource version"#]]);
}

#[tokio::test]
async fn a_create_checks_the_object_then_its_version_then_its_name() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let versioned = |name: &str, version: &str| {
        let mut object = config_map(name);
        object["metadata"]["resourceVersion"] = version.into();
        object
    };
    let mut invalid = versioned("a", "5");
    invalid["data"] = json!({"no key": "x"});
    api.post(&path, invalid.clone()).await.is(422);
    invalid["metadata"]["resourceVersion"] = "".into();
    api.post(&path, invalid).await.is(422);
    api.post(&path, versioned("a", "5"))
        .await
        .shows(expect!["500 -: resourceVersion should not be set on objects to be created"]);
    api.post(&path, versioned("b", "x")).await.is(201);
    api.post(&path, versioned("c", "0")).await.is(201);
    api.post(&format!("{path}?dryRun=All"), versioned("d", "5")).await.is(201);
}

#[tokio::test]
async fn a_name_that_is_taken_says_why() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(&path, object.clone()).await.is(201);
    object["metadata"]["generateName"] = "b".into();
    api.post(&path, object.clone()).await.shows(expect![[r#"
        409 AlreadyExists: configmaps "a" already exists, the server was not able to generate a unique name for the object
        kind="configmaps" name="a" retryAfterSeconds=1"#]]);
    api.delete(&format!("{path}/a")).await.is(200);
    api.post(&path, config_map("a")).await.shows(expect![[r#"
        409 AlreadyExists: object is being deleted: configmaps "a" already exists
        kind="configmaps" name="a""#]]);
    let patch = json!({"metadata": {"finalizers": null}});
    api.patch(&format!("{path}/a"), MERGE_PATCH, patch).await.is(200);
}

#[tokio::test]
async fn a_namespace_is_taken_off_objects_of_the_cluster() {
    let api = Api::start();
    let name = format!("class-{}", api.id);
    let class = json!({"metadata": {"name": name, "namespace": "x"}, "provisioner": "example.com/a"});
    let path = "/apis/storage.k8s.io/v1/storageclasses";
    let created = api.post(&format!("{path}?dryRun=All"), class).await.is(201);
    assert_eq!(created.at("/metadata/namespace"), json!(null));
}
