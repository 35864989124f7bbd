//! Bodies in YAML and in protobuf.

use expect_test::expect;
use http::Method;
use serde_json::json;

use crate::fixtures::{deployment, widgets_path};
use crate::harness::{Api, MERGE_PATCH, STRATEGIC_PATCH, lines};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

#[tokio::test]
async fn yaml_is_read() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let maps = format!("/api/v1/namespaces/ns-{}/configmaps", api.id);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {n: \"1\"}\ndata:\n  text: |\n    one\n    two\n  other: \"on\"\n";
    let created = api.request(Method::POST, &maps).body("application/yaml", yaml).send().await.is(201);
    assert_eq!(created.at("/data"), json!({"text": "one\ntwo\n", "other": "on"}));
    let group = &path["/apis/".len()..path.find("/v1/").unwrap()];
    let yaml = format!(
        "apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: a}}\nspec:\n  size: 3\n  tags: [a, b]\n"
    );
    let created =
        api.request(Method::POST, &path).body("application/yaml", yaml.clone()).send().await.is(201);
    assert_eq!(created.at("/spec/tags"), json!(["a", "b"]));
    let put = created.text_at("/metadata/resourceVersion");
    let yaml = yaml
        .replace("name: a", &format!("name: a, resourceVersion: \"{put}\""))
        .replace("size: 3", "size: 4");
    let updated =
        api.request(Method::PUT, &format!("{path}/a")).body("application/yaml", yaml).send().await.is(200);
    assert_eq!(updated.at("/spec/size"), 4);
}

#[tokio::test]
async fn yaml_that_is_none() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let send = |yaml: &'static str| api.request(Method::POST, &maps).body("application/yaml", yaml).send();
    let broken = send("a: [").await.is(400);
    assert_eq!(broken.text_at("/reason"), "BadRequest");
    let unquoted = send("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: 5}\n").await;
    unquoted.shows(expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string"#]]);
    assert_eq!(send("just text").await.code, 400);
}

/// A field of a protobuf message whose value has a length.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    assert!(value.len() < 128 && number < 16);
    let mut bytes = vec![number << 3 | 2, value.len() as u8];
    bytes.extend_from_slice(value);
    bytes
}

/// Kubernetes' envelope around a message.
fn envelope(version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let kind = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
    let unknown = [field(1, &kind), field(2, message)].concat();
    [b"k8s\0".to_vec(), unknown].concat()
}

/// A ConfigMap: its metadata is field 1 with the name in field 1 and labels in field 11; data is field 2.
fn config_map_message(name: &str) -> Vec<u8> {
    let entry = |key: &str, value: &str| [field(1, key.as_bytes()), field(2, value.as_bytes())].concat();
    let metadata = [field(1, name.as_bytes()), field(11, &entry("l", "v"))].concat();
    [field(1, &metadata), field(2, &entry("k", "v")), field(2, &entry("n", "w"))].concat()
}

#[tokio::test]
async fn protobuf_is_read() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let body = envelope("v1", "ConfigMap", &config_map_message("a"));
    let request = api.request(Method::POST, &maps).accept("application/json").body(PROTOBUF, body.clone());
    let created = request.send().await.is(201);
    assert_eq!(created.at("/data"), json!({"k": "v", "n": "w"}));
    assert_eq!(created.at("/metadata/labels"), json!({"l": "v"}));
    let request =
        api.request(Method::PUT, &format!("{maps}/a")).accept("application/json").body(PROTOBUF, body);
    request.send().await.is(200);
    // DeleteOptions: gracePeriodSeconds is field 1, propagationPolicy field 4.
    let options = envelope("v1", "DeleteOptions", &[vec![1 << 3, 0], field(4, b"Background")].concat());
    let request =
        api.request(Method::DELETE, &format!("{maps}/a")).accept("application/json").body(PROTOBUF, options);
    request.send().await.is(200);
    api.get(&format!("{maps}/a")).await.is(404);
}

#[tokio::test]
async fn protobuf_of_nested_messages_numbers_and_lists() {
    let api = Api::start();
    let ns = api.namespace().await;
    // Lease: metadata 1, spec 2 {holderIdentity 1, leaseDurationSeconds 2, acquireTime 3 {seconds 1, nanos 2}}
    let time = [vec![1 << 3], varint(1_700_000_000), vec![2 << 3], varint(123_456_000)].concat();
    let spec = [field(1, b"me"), vec![2 << 3, 15], field(3, &time)].concat();
    let lease = [field(1, &field(1, b"a")), field(2, &spec)].concat();
    let body = envelope("coordination.k8s.io/v1", "Lease", &lease);
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases");
    let request = api.request(Method::POST, &leases).accept("application/json").body(PROTOBUF, body);
    let created = request.send().await.is(201);
    let spec = json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2023-11-14T22:13:20.123456Z"});
    assert_eq!(created.at("/spec"), spec);
    // Service: spec 2 {ports 1 {port 3, targetPort 4 {type 1, strVal 3}}, selector 2, clusterIP 3}
    let target = [vec![1 << 3, 1], field(3, b"web")].concat();
    let port = [vec![3 << 3, 80], field(4, &target)].concat();
    let selector = [field(1, b"app"), field(2, b"a")].concat();
    let spec = [field(1, &port), field(2, &selector), field(3, b"None")].concat();
    let service = [field(1, &field(1, b"a")), field(2, &spec)].concat();
    let services = format!("/api/v1/namespaces/{ns}/services");
    let body = envelope("v1", "Service", &service);
    let request = api.request(Method::POST, &services).accept("application/json").body(PROTOBUF, body);
    let created = request.send().await.is(201);
    assert_eq!(created.at("/spec/ports"), json!([{"port": 80, "protocol": "TCP", "targetPort": "web"}]));
    assert_eq!(created.at("/spec/selector"), json!({"app": "a"}));
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[tokio::test]
async fn protobuf_that_is_none() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let send = |body: Vec<u8>| {
        api.request(Method::POST, &maps).accept("application/json").body(PROTOBUF, body).send()
    };
    send(b"nonsense".to_vec()).await.shows(expect!["400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (6e6f6e73656e7365)"]);
    send(b"".to_vec()).await.shows(expect!["400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"]);
    send(b"k8s\0\xff\xff".to_vec()).await.is(400);
    let cut = envelope("v1", "ConfigMap", &config_map_message("a"));
    send(cut[..cut.len() - 3].to_vec()).await.is(400);
    send(envelope("v1", "Banana", &[])).await.shows(expect![[r#"400 BadRequest: Banana in version "v1" cannot be handled as a ConfigMap: no kind "Banana" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#]]);
    send(envelope("v1", "Secret", &field(1, &field(1, b"a")))).await.shows(expect![[r#"400 BadRequest: Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"#]]);
}

#[tokio::test]
async fn base64_may_have_line_breaks_and_spare_bits() {
    let api = Api::start();
    let ns = api.namespace().await;
    let (secrets, maps) =
        (format!("/api/v1/namespaces/{ns}/secrets"), format!("/api/v1/namespaces/{ns}/configmaps"));
    let data = json!({"a": "eHh4\neHh4\r\n", "b": "e\nA=\n=", "c": "eB=="});
    let expected = json!({"a": "eHh4eHh4", "b": "eA==", "c": "eA=="});
    let created = api.post(&secrets, json!({"metadata": {"name": "a"}, "data": data})).await.is(201);
    assert_eq!(created.at("/data"), expected);
    let created = api.post(&maps, json!({"metadata": {"name": "a"}, "binaryData": data})).await.is(201);
    assert_eq!(created.at("/binaryData"), expected);
    let kind = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "data": data});
    let applied =
        api.patch(&format!("{secrets}/b?fieldManager=a"), "application/apply-patch+yaml", kind).await;
    assert_eq!(applied.is(201).at("/data"), expected);
    for media_type in [MERGE_PATCH, STRATEGIC_PATCH] {
        let patched = api.patch(&format!("{secrets}/b"), media_type, json!({"data": {"d": "eHh4\n"}})).await;
        assert_eq!(patched.is(200).at("/data/d"), "eHh4");
    }
    let cut = api.post(&secrets, json!({"metadata": {"name": "c"}, "data": {"a": "eA\n"}})).await.is(400);
    assert!(
        cut.text_at("/message").ends_with("illegal base64 data at input byte 1"),
        "{}",
        cut.text_at("/message")
    );
}

#[tokio::test]
async fn null_does_not_replace_the_kind_that_a_body_names_first() {
    let api = Api::start();
    let ns = api.namespace().await;
    let body = r#"{"apiVersion":"v1","kind":"Other","kind":null,"metadata":{"name":"x"}}"#;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let refused = api.request(Method::POST, &path).body("application/json", body).send().await.is(400);
    assert!(refused.text_at("/message").contains("no kind \"Other\" is registered"));
}

#[tokio::test]
async fn unusual_bodies_are_read_as_the_real_server_does() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let two = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m1}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m2}\n";
    let mut seen = Vec::new();
    let apply = api.request(Method::PATCH, &format!("{maps}/m1?fieldManager=x"));
    seen.push(apply.body("application/apply-patch+yaml", two).send().await.code.to_string());
    seen.push(api.request(Method::POST, &maps).body("application/yaml", two).send().await.to_string());
    let foo = api.request(Method::PATCH, &format!("{maps}/m1"));
    seen.push(foo.body("application/foo", "{}").send().await.text_at("/message"));
    let details =
        api.request(Method::PATCH, &format!("{maps}/m1")).body("application/foo", "{}").send().await;
    seen.push(details.at("/details").to_string());
    for object in [
        json!({"metadata": {"name": "b"}, "binaryData": {"a": "!!!"}}),
        json!({"metadata": {"name": "b"}, "binaryData": {"a": "QQ"}}),
        json!({"metadata": {"name": "b", "managedFields": "x"}}),
        json!({"metadata": {"name": "b", "managedFields": {}}}),
        json!({"metadata": {"name": "b", "managedFields": [1]}}),
    ] {
        seen.push(api.post(&format!("{maps}?dryRun=All"), object).await.to_string());
    }
    let entry = json!({
        "manager": "x", "operation": "Update", "apiVersion": "a/b/c", "fieldsType": "FieldsV1", "fieldsV1": {}
    });
    let object = json!({"metadata": {"name": "b", "managedFields": [entry]}});
    let reply = api.post(&format!("{maps}?dryRun=All"), object).await;
    seen.push(format!("{} {}", reply.code, reply.at("/metadata/managedFields").is_null()));
    expect![[r#"
        201
        409 AlreadyExists: configmaps "m1" already exists
        kind="configmaps" name="m1"
        415: Unsupported Media Type
        {}
        400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 0
        400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 0
        400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal string into Go struct field ObjectMeta.metadata.managedFields of type []v1.ManagedFieldsEntry
        400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal object into Go struct field ObjectMeta.metadata.managedFields of type []v1.ManagedFieldsEntry
        400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.managedFields of type v1.ManagedFieldsEntry
        201 true
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn bytes_may_be_a_list_of_numbers() {
    let api = Api::start();
    for (given, stored) in [(json!([1, 2, 3]), "AQID"), (json!([null]), "AA==")] {
        let configuration = json!({"metadata": {"name": "bytes.example.com"}, "webhooks": [{
            "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://example.com/x", "caBundle": given},
        }]});
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All";
        let reply = api.post(path, configuration).await.is(201);
        assert_eq!(reply.at("/webhooks/0/clientConfig/caBundle"), stored);
    }
}

#[tokio::test]
async fn an_empty_body_in_yaml_is_an_object_without_fields() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut seen = Vec::new();
    for text in ["", "null", "# nothing\n"] {
        let reply =
            api.request(Method::PUT, &format!("{maps}/a")).body("application/yaml", text).send().await;
        seen.push(reply.to_string());
    }
    expect![[r#"
        400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided
        400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided
        400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_float_for_an_integer_is_quoted_as_it_was_sent() {
    let api = Api::start();
    let ns = api.namespace().await;
    let event = json!({"metadata": {"name": "a"}, "count": 1.0});
    api.post(&format!("/api/v1/namespaces/{ns}/events"), event).await.shows(expect![[r#"400 BadRequest: Event in version "v1" cannot be handled as a Event: json: cannot unmarshal number 1.0 into Go struct field Event.count of type int32"#]]);
}

#[tokio::test]
async fn options_of_a_deletion_without_a_version_are_those_of_the_meta_group() {
    let api = Api::start();
    let ns = api.namespace().await;
    let map = format!("/api/v1/namespaces/{ns}/configmaps/a");
    let mut seen = Vec::new();
    for options in [
        json!({"kind": "ConfigMap"}),
        json!({"apiVersion": "a/b/c", "kind": "DeleteOptions"}),
        json!({"apiVersion": 5}),
        json!({"kind": ["DeleteOptions"]}),
    ] {
        seen.push(api.delete_with(&map, options).await.to_string());
    }
    expect![[r#"
        400 BadRequest: no kind "ConfigMap" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"
        400 BadRequest: unexpected GroupVersion string: a/b/c
        400 BadRequest: couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string
        400 BadRequest: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go struct field .kind of type string
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_whole_number_in_yaml_is_an_integer() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments?dryRun=All");
    let mut body = deployment("a");
    body["spec"]["replicas"] = json!(4.0);
    let text = body.to_string();
    assert!(text.contains("\"replicas\":4.0"), "{text}");
    let yaml = api.request(Method::POST, &path).body("application/yaml", text.clone()).send().await.is(201);
    assert_eq!(yaml.at("/spec/replicas"), 4);
    api.request(Method::POST, &path).body("application/json", text).send().await.is(400);
    body["spec"]["replicas"] = json!(100);
    let spec = body["spec"].to_string().replace("\"replicas\":100", "\"replicas\": 1e2");
    let document = format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\nspec: {spec}\n");
    let yaml = api.request(Method::POST, &path).body("application/yaml", document).send().await.is(201);
    assert_eq!(yaml.at("/spec/replicas"), 100);
}

#[tokio::test]
async fn a_key_of_yaml_that_is_no_text_becomes_a_text() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps?dryRun=All");
    let document = "metadata: {name: a}\ndata: {yes: a, 'yes': b, n: c, 0x10: d, 1.50: e, plain: f}\n";
    let map = api.request(Method::POST, &path).body("application/yaml", document).send().await.is(201);
    let expected = json!({"true": "a", "yes": "b", "false": "c", "16": "d", "1.5": "e", "plain": "f"});
    assert_eq!(map.at("/data"), expected);
}
