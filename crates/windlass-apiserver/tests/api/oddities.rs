//! Requests that few clients send: methods without a verb, options that contradict each other, unusual bodies.

use expect_test::expect;
use http::Method;
use serde_json::json;

use crate::harness::{Api, lines};

#[tokio::test]
async fn methods_that_are_no_verb_are_not_allowed() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut seen = Vec::new();
    for path in [
        format!("/api/v1/namespaces/{ns}"),
        format!("/api/v1/namespaces/{ns}/configmaps"),
        "/apis/apps/v1/deployments".to_owned(),
        "/api".to_owned(),
        "/apis".to_owned(),
        "/apis/apps/v1".to_owned(),
        "/version".to_owned(),
        "/healthz".to_owned(),
    ] {
        let head = api.request(Method::HEAD, &path).send().await;
        let options = api.request(Method::OPTIONS, &path).send().await;
        seen.push(format!("{path}: {} {:?} {}", head.code, head.header("content-type"), options.code));
    }
    let name = format!("/{ns}");
    expect![[r#"
        /api/v1/namespaces/NS: 405 Some("application/json") 405
        /api/v1/namespaces/NS/configmaps: 405 Some("application/json") 405
        /apis/apps/v1/deployments: 405 Some("application/json") 405
        /api: 405 Some("application/json") 405
        /apis: 200 Some("application/json") 200
        /apis/apps/v1: 405 Some("application/json") 405
        /version: 405 Some("application/json") 405
        /healthz: 200 Some("text/plain; charset=utf-8") 200
    "#]]
    .assert_eq(&lines(&seen).replace(&name, "/NS"));
    api.request(Method::OPTIONS, "/api/v1/nodes").send().await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
}

#[tokio::test]
async fn a_list_has_all_errors_of_its_options() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut seen = Vec::new();
    for query in [
        "resourceVersionMatch=foo",
        "resourceVersionMatch=foo&resourceVersion=0",
        "resourceVersionMatch=Exact",
        "fieldSelector=metadata.name%3Dx&resourceVersionMatch=foo",
    ] {
        seen.push(api.get(&format!("/api/v1/namespaces/{ns}/configmaps?{query}")).await.to_string());
    }
    expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: [as below]
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
        - FieldValueNotSupported resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueNotSupported resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: [as below]
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
        - FieldValueNotSupported resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""
    "#]].assert_eq(&lines(&seen));
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
async fn component_statuses_are_found_out_when_asked_for() {
    let api = Api::start();
    let path = "/api/v1/componentstatuses";
    let list = api.get(path).await.is(200).json();
    assert_eq!((&list["kind"], &list["metadata"]), (&json!("ComponentStatusList"), &json!({})));
    let mut names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["controller-manager", "etcd-0", "scheduler"]);
    let store = api.get(&format!("{path}/etcd-0")).await.is(200).json();
    assert_eq!(
        store,
        json!({
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": "etcd-0"},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
        })
    );
    let selected = api.get(&format!("{path}?fieldSelector=metadata.name%3Dscheduler")).await.is(200).json();
    assert_eq!(selected["items"].as_array().map(Vec::len), Some(1));
    let labelled = api.get(&format!("{path}?labelSelector=a%3Db")).await.is(200).json();
    assert_eq!(labelled["items"], json!([]));
    let table = api
        .request(Method::GET, &format!("{path}/etcd-0"))
        .accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    assert_eq!(table.send().await.is(200).json()["rows"][0]["cells"], json!(["etcd-0", "Healthy", "ok", ""]));
    let mut seen = Vec::new();
    for path in [format!("{path}/none"), format!("{path}?watch=1")] {
        seen.push(api.get(&path).await.to_string());
    }
    seen.push(api.post(path, json!({})).await.to_string());
    expect![[r#"
        404
        Warning: 299 - "v1 ComponentStatus is deprecated in v1.19+" NotFound: componentstatus "none" not found
        kind="componentstatus" name="none"
        405
        Warning: 299 - "v1 ComponentStatus is deprecated in v1.19+" MethodNotAllowed: watch is not supported on resources of kind "componentstatuses"
        kind="componentstatuses"
        405 MethodNotAllowed: the server does not allow this method on the requested resource
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_quantity_is_stored_as_go_writes_it() {
    let api = Api::start();
    let pods = format!("/api/v1/namespaces/{}/pods?dryRun=All", api.namespace().await);
    for (given, stored) in [
        ("1.500", "1.500"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1e30", "1e30"),
        ("123456.789", "123456.789"),
        // Lists of resources count thousandths.
        ("0.0001", "1m"),
        ("20u", "1m"),
        ("1.5e-3", "2e-3"),
    ] {
        let requests = json!({"cpu": given});
        let pod = json!({
            "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]},
        });
        let reply = api.post(&pods, pod).await.is(201);
        assert_eq!(reply.at("/spec/containers/0/resources/requests/cpu"), stored, "{given}");
    }
    let class =
        json!({"metadata": {"name": "q"}, "handler": "h", "overhead": {"podFixed": {"cpu": "0.0001"}}});
    let reply = api.post("/apis/node.k8s.io/v1/runtimeclasses?dryRun=All", class).await.is(201);
    assert_eq!(reply.at("/overhead/podFixed/cpu"), "100u");
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
async fn an_unknown_field_is_told_even_where_defaults_drop_it() {
    let api = Api::start();
    let services = format!("/api/v1/namespaces/{}/services?dryRun=All", api.namespace().await);
    let spec = json!({"ports": [{"port": 80}], "sessionAffinityConfig": {"unknown": 1}});
    let reply = api.post(&services, json!({"metadata": {"name": "a"}, "spec": spec})).await.is(201);
    let warnings = reply.warnings();
    assert_eq!(warnings, [r#"299 - "unknown field \"spec.sessionAffinityConfig.unknown\"""#]);
}

#[tokio::test]
async fn a_write_of_the_status_keeps_the_generation_of_the_template() {
    let api = Api::start();
    let sets = format!("/apis/apps/v1/namespaces/{}/daemonsets", api.namespace().await);
    let template = json!({
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    let mut set = api.post(&sets, json!({"metadata": {"name": "a"}, "spec": spec})).await.is(201).json();
    let annotation = "/metadata/annotations/deprecated.daemonset.template.generation";
    set["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = json!("7");
    let kept = api.put(&format!("{sets}/a/status"), set).await.is(200);
    assert_eq!(kept.at(annotation), "1");
}
