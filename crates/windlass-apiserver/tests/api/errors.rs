//! Replies to requests that make no sense.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{config_map, deployment, pod, widget, widgets_path};
use crate::harness::{Api, lines};

#[tokio::test]
async fn a_path_that_is_none() {
    let api = Api::start();
    api.get("/nothing/here").await.shows(expect![[r#"
        404
        404 page not found
    "#]]);
    api.get("/apis/no-such-group.example.com/v1/things").await.shows(expect![[r#"
        404
        404 page not found
    "#]]);
    api.get("/apis/no-such-group.example.com").await.shows(expect![[r#"
        404
        404 page not found
    "#]]);
    api.get("/apis/apps/v9/deployments")
        .await
        .shows(expect!["404 NotFound: the server could not find the requested resource"]);
    api.get("/api/v1/things")
        .await
        .shows(expect!["404 NotFound: the server could not find the requested resource"]);
    api.get("/api/v1/namespaces/default/things/x")
        .await
        .shows(expect!["404 NotFound: the server could not find the requested resource"]);
    api.get("/api/v1/namespaces/default/pods/x/nothing")
        .await
        .shows(expect!["404 NotFound: the server could not find the requested resource"]);
    api.get("/api/v1/namespaces/default/nodes")
        .await
        .shows(expect!["404 NotFound: the server could not find the requested resource"]);
    api.get("/api/v2").await.shows(expect!["404 NotFound: the server could not find the requested resource"]);
}

#[tokio::test]
async fn a_custom_group_without_the_resource() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.get(&path.replace("widgets", "gadgets")).await.shows(expect![[r#"
        404
        404 page not found
    "#]]);
    api.get(&format!("{path}/a/nothing")).await.shows(expect![[r#"
        404 NotFound: widgets.ID.example.com "a" not found
        group="ID.example.com" kind="widgets" name="a""#]]);
}

#[tokio::test]
async fn a_verb_that_the_path_does_not_know() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let ns = format!("ns-{}", api.id);
    let send = async |method: Method, path: &str| api.request(method, path).json(&json!({})).send().await;
    send(Method::POST, &format!("/api/v1/namespaces/{ns}/configmaps/a")).await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
    send(Method::PUT, &format!("/api/v1/namespaces/{ns}/configmaps")).await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
    send(Method::PATCH, &format!("/api/v1/namespaces/{ns}/configmaps")).await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
    send(Method::POST, "/api/v1/configmaps").await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
    send(Method::DELETE, "/api/v1/configmaps").await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
    send(Method::DELETE, &format!("/api/v1/namespaces/{ns}/pods/a/status")).await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
    send(Method::POST, &format!("{path}/a")).await.shows(expect!["400 BadRequest: the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{}' ({})"]);
    send(Method::PUT, &path).await.shows(expect!["400 BadRequest: name must be provided"]);
    send(Method::POST, "/apis/apps/v1/deployments").await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
    send(Method::POST, "/version").await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
    send(Method::OPTIONS, &format!("/api/v1/namespaces/{ns}/configmaps")).await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
}

#[tokio::test]
async fn a_body_that_is_not_json() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let maps = format!("/api/v1/namespaces/ns-{}/configmaps", api.id);
    let send = async |path: &str, body: &'static str| {
        api.request(Method::POST, path).body("application/json", body).send().await
    };
    send(&maps, "{").await.shows(expect!["400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({)"]);
    send(&maps, "").await.shows(expect!["400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"]);
    send(&maps, "[]").await.shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)"#]]);
    send(&maps, "\"text\"").await.shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (227465787422)"#]]);
    send(&maps, "null").await.shows(expect![[r#"
        422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
        kind="ConfigMap"
        - FieldValueRequired metadata.name: Required value: name or generateName is required"#]]);
    send(&maps, "{}").await.shows(expect![[r#"
        422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
        kind="ConfigMap"
        - FieldValueRequired metadata.name: Required value: name or generateName is required"#]]);
    send(&maps, r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}"#)
        .await
        .shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({"kind":"ConfigMap","apiVersio ...)"#]]);
    send(&maps, r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}} trailing"#)
        .await
        .shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 't' after top-level value ({"kind":"ConfigMap","apiVersio ...)"#]]);
    send(&maps, r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":nope}}"#)
        .await
        .shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'o' in literal null (expecting 'u') ({"kind":"ConfigMap","apiVersio ...)"#]]);
    send(&path, "{").await.shows(expect!["400 BadRequest: the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input ({)"]);
    send(&path, "").await.shows(expect!["400 BadRequest: the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"]);
    send(&path, "[]").await.shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)"#]]);
    send(&path, "{}").await.shows(expect!["400 BadRequest: the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{}' ({})"]);
}

#[tokio::test]
async fn a_field_of_the_wrong_type() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let change = |mut body: Value, pointer: &str, value: Value| {
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    api.post(&maps, change(config_map("a"), "/data", json!("x"))).await.shows(expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"#]]);
    api.post(&maps, change(config_map("a"), "/data/k", json!(1))).await.shows(expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string"#]]);
    api.post(&maps, change(config_map("a"), "/data/k", json!({}))).await.shows(expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal object into Go struct field ConfigMap.data of type string"#]]);
    api.post(&maps, change(config_map("a"), "/metadata", json!("x"))).await.shows(expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"#]]);
    api.post(&maps, change(config_map("a"), "/metadata/name", json!(7))).await.shows(expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"#]]);
    api.post(&maps, change(config_map("a"), "/kind", json!(7))).await.shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string ({"apiVersion":"v1","data":{"k" ...)"#]]);
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&pods, change(pod("a"), "/spec/containers", json!({}))).await.shows(expect![[r#"400 BadRequest: Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"#]]);
    api.post(&pods, change(pod("a"), "/spec/containers/0/name", json!(true))).await.shows(expect![[r#"400 BadRequest: Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal bool into Go struct field Container.spec.containers.name of type string"#]]);
    let deployments = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&deployments, change(deployment("a"), "/spec/replicas", json!("two"))).await.shows(expect![[r#"400 BadRequest: Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"#]]);
    api.post(&deployments, change(deployment("a"), "/spec/replicas", json!(1.5))).await.shows(expect![[r#"400 BadRequest: Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"#]]);
    api.post(&deployments, change(deployment("a"), "/spec/replicas", json!(99_999_999_999_u64)))
        .await
        .shows(expect![[r#"400 BadRequest: Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32"#]]);
    api.post(&format!("/api/v1/namespaces/{ns}/secrets"), json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "not base64!"}})).await.shows(expect![[r#"400 BadRequest: Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 3"#]]);
    api.post(&pods, change(pod("a"), "/metadata", json!({"name": "a", "creationTimestamp": "yesterday"})))
        .await
        .shows(expect![[r#"400 BadRequest: Pod in version "v1" cannot be handled as a Pod: parsing time "yesterday" as "TIME07:00": cannot parse "yesterday" as "2006""#]]);
}

#[tokio::test]
async fn an_object_of_another_kind() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&maps, pod("a")).await.shows(expect![[r#"400 BadRequest: Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion"#]]);
    api.post(&maps, deployment("a")).await.shows(expect![[r#"400 BadRequest: Deployment in version "v1" cannot be handled as a ConfigMap: converting (v1.Deployment) to (core.ConfigMap): unknown conversion"#]]);
    let with =
        |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
    api.post(&maps, with("v2", "ConfigMap")).await.shows(expect![[r#"400 BadRequest: ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111""#]]);
    api.post(&maps, with("v1", "Banana")).await.shows(expect![[r#"400 BadRequest: Banana in version "v1" cannot be handled as a ConfigMap: no kind "Banana" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#]]);
    api.post(&maps, with("example.com/v1", "ConfigMap")).await.shows(expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "example.com/v1" in scheme "pkg/runtime/scheme.go:111""#]]);
    api.post(&maps, with("a/b/c", "ConfigMap")).await.shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)"#]]);
    api.post(&maps, json!({"metadata": {"name": "bare"}})).await.is(201);
    api.post(&maps, json!({"kind": "ConfigMap", "metadata": {"name": "kind-only"}})).await.is(201);
    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": []});
    api.post(&maps, list).await.shows(expect![[r#"400 BadRequest: ConfigMapList in version "v1" cannot be handled as a ConfigMap: converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion"#]]);
    let deployments = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    let autoscalers = format!("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers");
    api.post(&autoscalers, with("autoscaling/v1", "HorizontalPodAutoscaler")).await.shows(expect!["400 BadRequest: the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)"]);
    api.post(&deployments, with("apps/v7", "Deployment")).await.shows(expect![[r#"400 BadRequest: Deployment in version "v7" cannot be handled as a Deployment: no kind "Deployment" is registered for version "apps/v7" in scheme "pkg/runtime/scheme.go:111""#]]);
    api.post(&deployments, with("apps/v1", "ReplicaSet")).await.shows(expect![[r#"400 BadRequest: ReplicaSet in version "v1" cannot be handled as a Deployment: converting (v1.ReplicaSet) to (apps.Deployment): unknown conversion"#]]);
}

#[tokio::test]
async fn a_media_type_that_nobody_reads() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let maps = format!("/api/v1/namespaces/ns-{}/configmaps", api.id);
    let send = |path: &str, media_type: &str| {
        api.request(Method::POST, path).body(media_type, config_map("a").to_string()).send()
    };
    send(&maps, "text/plain").await.shows(expect!["415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    send(&path, "text/plain").await.shows(expect!["415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    send(&maps, "application/cbor").await.shows(expect!["415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    send(&maps, "garbage").await.shows(expect!["415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    send(&maps, "application/json; charset=utf-8").await.is(201);
    api.request(Method::POST, &maps)
        .header("x-nothing", "y")
        .body("", config_map("b").to_string())
        .send()
        .await
        .shows(expect![[r#"
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
                "name": "b",
                "namespace": "ns-ID",
                "resourceVersion": "RV",
                "uid": "UID"
              }
            }"#]]);
}

#[tokio::test]
async fn a_body_that_is_too_large() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let maps = format!("/api/v1/namespaces/ns-{}/configmaps", api.id);
    let mut body = config_map("a");
    body["data"]["k"] = json!("v".repeat(3 * 1024 * 1024));
    api.post(&maps, body.clone())
        .await
        .shows(expect!["413 RequestEntityTooLarge: Request entity too large: limit is 3145728"]);
    let mut large = widget(&api, "a");
    large["spec"]["x"] = body["data"]["k"].clone();
    api.post(&path, large).await.is(413);
    body["data"]["k"] = json!("v".repeat(1024 * 1024 + 1));
    api.post(&maps, body.clone()).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes
        kind="ConfigMap" name="a"
        - FieldValueTooLong []: Too long: may not be more than 1048576 bytes"#]]);
    api.request(Method::PATCH, &format!("{maps}/a"))
        .body(
            "application/merge-patch+json",
            format!("{{\"data\":{{\"k\":\"{}\"}}}}", "v".repeat(3 * 1024 * 1024)),
        )
        .send()
        .await
        .is(413);
}

#[tokio::test]
async fn a_body_that_is_too_deep() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let maps = format!("/api/v1/namespaces/ns-{}/configmaps", api.id);
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let body = config_map("a").to_string().replace("\"v\"", &deep);
    api.request(Method::POST, &maps).body("application/json", body).send().await.shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character '[' exceeded max depth ({"apiVersion":"v1","data":{"k" ...)"#]]);
    let body = widget(&api, "a").to_string().replace("\"size\":3", &format!("\"size\":3,\"x\":{deep}"));
    api.request(Method::POST, &path).body("application/json", body).send().await.shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: invalid character '[' exceeded max depth ({"apiVersion":"ID.exam ...)"#]]);
}

#[tokio::test]
async fn parameters_that_are_no_parameters() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&format!("{maps}?fieldManager={}", "m".repeat(129)), config_map("a")).await.shows(expect![[r#"
        422 Invalid: CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes
        group="meta.k8s.io" kind="CreateOptions"
        - FieldValueTooLong fieldManager: Too long: may not be more than 128 bytes"#]]);
    api.post(&format!("{maps}?fieldManager=a%0Ab"), config_map("a")).await.shows(expect![[r#"
        422 Invalid: CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\nb": invalid character U+000A (at position 1)
        group="meta.k8s.io" kind="CreateOptions"
        - FieldValueInvalid fieldManager: Invalid value: "a\nb": invalid character U+000A (at position 1)"#]]);
    api.post(&format!("{maps}?force=true"), config_map("a")).await.is(201);
    api.get(&format!("{maps}?pretty=true&unknown=1")).await.is(200);
    let mut patch = api.request(Method::PATCH, &format!("{maps}/a?force=true"));
    patch = patch.body("application/merge-patch+json", "{}");
    patch.send().await.shows(expect![[r#"
        422 Invalid: PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch
        group="meta.k8s.io" kind="PatchOptions"
        - FieldValueForbidden force: Forbidden: may not be specified for non-apply patch"#]]);
}

#[tokio::test]
async fn of_very_many_errors_the_first_are_listed() {
    let api = Api::start();
    if api.is_shared() {
        // The real server lists all errors.
        return;
    }
    let ns = api.namespace().await;
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = (0..5_000).map(|number| json!(format!("_{number}"))).collect();
    let reply = api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), body).await.is(422);
    let causes = reply.at("/details/causes");
    let causes = causes.as_array().unwrap();
    assert_eq!(causes.len(), 1001);
    assert_eq!(causes[1000]["message"], "Forbidden: too many errors; the others are not listed");
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
