//! `fieldValidation`: fields that the kind does not have, and fields that come twice.

use expect_test::expect;
use http::Method;
use serde_json::json;

use crate::fixtures::{config_map, deployment, widget, widgets_path};
use crate::harness::{Api, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

#[tokio::test]
async fn strict_refuses_unknown_fields_of_a_built_in_kind() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    let mut body = deployment("a");
    body["spec"]["bogus"] = json!(1);
    body["spec"]["template"]["spec"]["containers"][0]["extra"] = json!(true);
    body["metadata"]["odd"] = json!("x");
    api.post(&format!("{path}?fieldValidation=Strict"), body.clone()).await.shows(expect![[r#"400 BadRequest: Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "metadata.odd", unknown field "spec.bogus", unknown field "spec.template.spec.containers[0].extra""#]]);
    api.get(&format!("{path}/a")).await.is(404);
    let warned = api.post(&format!("{path}?fieldValidation=Warn"), body.clone()).await.is(201);
    expect![[r#"
        299 - "unknown field \"metadata.odd\""
        299 - "unknown field \"spec.bogus\""
        299 - "unknown field \"spec.template.spec.containers[0].extra\"""#]]
    .assert_eq(&warned.warnings().join("\n"));
    api.delete(&format!("{path}/a?propagationPolicy=Background")).await.is(200);
    let default = api.post(&path, body.clone()).await.is(201);
    assert_eq!(default.warnings(), warned.warnings(), "warning is the default");
    assert_eq!(default.at("/spec/bogus"), json!(null));
    let ignored = api.put(&format!("{path}/a?fieldValidation=Ignore"), body).await.is(200);
    assert_eq!(ignored.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn strict_refuses_unknown_fields_of_a_custom_resource() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = widget(&api, "a");
    body["spec"]["bogus"] = json!(1);
    body["other"] = json!({"x": 1});
    body["metadata"]["odd"] = json!("x");
    api.post(&format!("{path}?fieldValidation=Strict"), body.clone()).await.shows(expect![[r#"400 BadRequest: Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "metadata.odd", unknown field "other", unknown field "spec.bogus""#]]);
    let warned = api.post(&path, body).await;
    warned.shows(expect![[r#"
        201
        Warning: 299 - "unknown field \"metadata.odd\""
        Warning: 299 - "unknown field \"other\""
        Warning: 299 - "unknown field \"spec.bogus\""
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update ID.example.com/v1: {'f:spec':{'.':{},'f:colour':{},'f:replicas':{},'f:size':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "replicas": 1,
            "size": 3
          }
        }"#]]);
}

#[tokio::test]
async fn a_field_that_comes_twice_is_told() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let maps = format!("/api/v1/namespaces/ns-{}/configmaps", api.id);
    let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"a"},"data":{"k":"1","k":"2"}}"#;
    let request = api.request(Method::POST, &format!("{maps}?fieldValidation=Strict"));
    request.body("application/json", twice).send().await.shows(expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "metadata.name", duplicate field "data.k""#]]);
    let warned = api.request(Method::POST, &maps).body("application/json", twice).send().await.is(201);
    expect![[r#"
        299 - "duplicate field \"metadata.name\""
        299 - "duplicate field \"data.k\"""#]]
    .assert_eq(&warned.warnings().join("\n"));
    assert_eq!(warned.at("/data/k"), "2", "the last one counts");
    let twice = widget(&api, "a").to_string().replace(r#""size":3"#, r#""size":3,"size":4"#);
    let request = api.request(Method::POST, &format!("{path}?fieldValidation=Strict"));
    request.body("application/json", twice.clone()).send().await.shows(expect![[r#"400 BadRequest: Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size""#]]);
    let warned = api.request(Method::POST, &path).body("application/json", twice).send().await.is(201);
    expect![[r#"299 - "duplicate field \"spec.size\"""#]].assert_eq(&warned.warnings().join("\n"));
    assert_eq!(warned.at("/spec/size"), 4);
}

#[tokio::test]
async fn yaml_is_held_to_the_same() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps?fieldValidation=Strict");
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\nbogus: 1\ndata:\n  k: v\n  k: w\n";
    api.request(Method::POST, &maps).body("application/yaml", yaml).send().await.shows(expect![[r#"
        400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:
          line 8: key "k" already set in map, unknown field "bogus""#]]);
    let warn = maps.replace("Strict", "Warn");
    let warned = api.request(Method::POST, &warn).body("application/yaml", yaml).send().await.is(201);
    expect![[r#"
        299 - "line 8: key \"k\" already set in map"
        299 - "unknown field \"bogus\"""#]]
    .assert_eq(&warned.warnings().join("\n"));
}

#[tokio::test]
async fn the_body_of_a_subresource_is_held_to_it() {
    let api = Api::start();
    let ns = api.namespace().await;
    let account = json!({"metadata": {"name": "a"}});
    api.post(&format!("/api/v1/namespaces/{ns}/serviceaccounts"), account).await.is(201);
    let path = format!("/api/v1/namespaces/{ns}/serviceaccounts/a/token");
    let odd = json!({"spec": {"bogus": 1, "audiences": ["b"]}});
    let warned = api.post(&path, odd.clone()).await.is(201);
    expect![[r#"299 - "unknown field \"spec.bogus\"""#]].assert_eq(&warned.warnings().join("\n"));
    api.post(&format!("{path}?fieldValidation=Strict"), odd).await.shows(expect![[r#"400 BadRequest: TokenRequest in version "v1" cannot be handled as a TokenRequest: strict decoding error: unknown field "spec.bogus""#]]);
}

#[tokio::test]
async fn patches_are_held_to_it() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let strict = format!("{path}/a?fieldValidation=Strict");
    api.patch(&strict, MERGE_PATCH, json!({"spec": {"bogus": 1}})).await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: (the object): strict decoding error: unknown field "spec.bogus"
        - FieldValueInvalid patch: Invalid value: (the object): strict decoding error: unknown field "spec.bogus""#]]);
    api.patch(&strict, JSON_PATCH, json!([{"op": "add", "path": "/spec/bogus", "value": 1}]))
        .await
        .shows(expect![[r#"
            422 Invalid:  "" is invalid: patch: Invalid value: (the object): strict decoding error: unknown field "spec.bogus"
            - FieldValueInvalid patch: Invalid value: (the object): strict decoding error: unknown field "spec.bogus""#]]);
    let operation = json!([{"op": "add", "path": "/spec/size", "value": 4, "odd": 1}]);
    api.patch(&strict, JSON_PATCH, operation).await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: (the object): strict decoding error: json patch unknown field "[0].odd"
        - FieldValueInvalid patch: Invalid value: (the object): strict decoding error: json patch unknown field "[0].odd""#]]);
    let warned =
        api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"spec": {"bogus": 1, "size": 5}})).await.is(200);
    expect![[r#"299 - "unknown field \"spec.bogus\"""#]].assert_eq(&warned.warnings().join("\n"));
    let maps = format!("/api/v1/namespaces/ns-{}/configmaps", api.id);
    api.post(&maps, config_map("a")).await.is(201);
    let strict = format!("{maps}/a?fieldValidation=Strict");
    api.patch(&strict, MERGE_PATCH, json!({"bogus": 1})).await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: (the object): strict decoding error: unknown field "bogus"
        - FieldValueInvalid patch: Invalid value: (the object): strict decoding error: unknown field "bogus""#]]);
    api.patch(&strict, STRATEGIC_PATCH, json!({"bogus": 1})).await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: "map[bogus:1]": strict decoding error: unknown field "bogus"
        - FieldValueInvalid patch: Invalid value: "map[bogus:1]": strict decoding error: unknown field "bogus""#]]);
    let twice = r#"{"data":{"k":"1","k":"2"}}"#;
    api.request(Method::PATCH, &strict).body(MERGE_PATCH, twice).send().await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: (the object): strict decoding error: duplicate field "data.k"
        - FieldValueInvalid patch: Invalid value: (the object): strict decoding error: duplicate field "data.k""#]]);
}

#[tokio::test]
async fn other_words_are_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&format!("{path}?fieldValidation=Maybe"), config_map("a")).await.shows(expect![[r#"
        422 Invalid: CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"
        group="meta.k8s.io" kind="CreateOptions"
        - FieldValueNotSupported fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn""#]]);
}

#[tokio::test]
async fn warnings_are_limited_repeat_nothing_and_keep_their_characters() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let with_fields = |name: &str, fields: Vec<String>| {
        let mut body = widget(&api, name);
        let fields: Vec<String> = fields.iter().map(|field| format!("{}: 1", json!(field))).collect();
        body["spec"]["unknown"] = json!("");
        body.to_string().replace("\"unknown\":\"\"", &fields.join(",").replace("\": 1", "\":1"))
    };
    let send = async |body: String| {
        api.request(Method::POST, &path).body("application/json", body).send().await.is(201)
    };
    let reply = send(with_fields("a", vec!["größer".into()])).await;
    assert_eq!(reply.warnings(), [r#"299 - "unknown field \"spec.größer\"""#]);
    let reply = send(with_fields("escaped", vec![r#"a\.b""#.into(), "line\nbreak".into()])).await;
    assert_eq!(reply.warnings(), [r#"299 - "unknown field \"spec.a\\.b\"\"""#]);
    let patch = json!({"spec": {r"c\.d": 1}});
    let patched = api.patch(&format!("{path}/escaped"), MERGE_PATCH, patch).await.is(200);
    assert_eq!(patched.warnings(), [r#"299 - "unknown field \"spec.c\\.d\"""#]);
    let reply = send(with_fields("b", (0..500).map(|n| format!("{n:060}")).collect())).await;
    // Each has 81 characters: the last one ends beyond 4,096.
    assert_eq!(reply.warnings().len(), 51);
    let reply = send(with_fields("c", (0..9).map(|n| format!("{n}{}", "x".repeat(600))).collect())).await;
    let lengths: Vec<usize> = reply.warnings().iter().map(String::len).collect();
    // `299 - `, two quotes, an escaped quote, and 256 characters.
    assert_eq!(lengths, [265; 9]);
}

#[tokio::test]
async fn warnings_come_with_errors_too() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let object = json!({"metadata": {"name": "a"}, "unknown": 1, "data": {"no key": "x"}});
    let reply = api.post(&path, object).await.is(422);
    assert_eq!(reply.warnings(), ["299 - \"unknown field \\\"unknown\\\"\""]);
}

#[tokio::test]
async fn an_unknown_field_has_a_warning_even_where_defaults_drop_the_field() {
    let api = Api::start();
    let services = format!("/api/v1/namespaces/{}/services?dryRun=All", api.namespace().await);
    let spec = json!({"ports": [{"port": 80}], "sessionAffinityConfig": {"unknown": 1}});
    let reply = api.post(&services, json!({"metadata": {"name": "a"}, "spec": spec})).await.is(201);
    let warnings = reply.warnings();
    assert_eq!(warnings, [r#"299 - "unknown field \"spec.sessionAffinityConfig.unknown\"""#]);
}
