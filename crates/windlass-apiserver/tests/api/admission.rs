//! Admission webhooks: the called webhooks, the reviews, and the effect of the responses.

use std::time::{Duration, Instant};

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};
use windlass_patience::stretched;

use crate::fixtures::pod;
use crate::harness::{Answer, Api, MERGE_PATCH, Reply, Webhook, lines, plain, rule};

const APPLY: &str = "application/apply-patch+yaml";

/// Returns the part of a review that identifies the request.
fn request(review: &Value) -> Value {
    let request = review["request"].as_object().unwrap().iter();
    let shown = request.filter(|(field, _)| !matches!(field.as_str(), "object" | "oldObject" | "uid"));
    shown.map(|(field, value)| (field.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into()
}

/// Returns a line about a review: operation, resource and kind, name, and the objects.
fn line(review: &Value) -> String {
    let request = &review["request"];
    let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
    let object = |field: &str| match &request[field] {
        Value::Null => format!("no {field}"),
        object => format!("{field} {}", object["kind"].as_str().unwrap_or("?")),
    };
    format!(
        "{} {}/{}/{} {} {} in {}: {}, {}, {}",
        text("/operation"),
        text("/resource/version"),
        text("/resource/resource"),
        text("/subResource"),
        text("/kind/kind"),
        text("/name"),
        text("/namespace"),
        object("object"),
        object("oldObject"),
        request["options"],
    )
}

/// The reviews that were sent to a path. The real server sends some deletions again, because its cache is behind.
fn log(hook: &Webhook, path: &str, api: &Api) -> String {
    let mut seen: Vec<String> = hook.seen(path).iter().map(line).collect();
    // A webhook of a shared server sees the objects without a namespace of all tests.
    seen.retain(|line| !line.contains(" in -:") || line.contains(&api.id));
    seen.dedup();
    plain(&lines(&seen), &api.id)
}

#[tokio::test]
async fn a_review_says_who_does_what() {
    let api = Api::start_over_tls();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::allow()).await;
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("*", "", "v1", "configmaps")]
    }]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let account = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    api.post(&format!("{path}?fieldManager=me&fieldValidation=Strict"), account).await.is(201);
    let mut seen = request(&hook.seen("/a")[0]);
    // The administrators of the two servers differ.
    for field in ["uid", "extra"] {
        seen["userInfo"].as_object_mut().unwrap().remove(field);
    }
    seen["userInfo"]["username"] = json!("the administrator");
    seen["userInfo"]["groups"] = json!([]);
    expect![[r#"
        {
          "dryRun": false,
          "kind": {
            "group": "",
            "kind": "ConfigMap",
            "version": "v1"
          },
          "name": "a",
          "namespace": "ns-ID",
          "operation": "CREATE",
          "options": {
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
            "fieldValidation": "Strict",
            "kind": "CreateOptions"
          },
          "requestKind": {
            "group": "",
            "kind": "ConfigMap",
            "version": "v1"
          },
          "requestResource": {
            "group": "",
            "resource": "configmaps",
            "version": "v1"
          },
          "resource": {
            "group": "",
            "resource": "configmaps",
            "version": "v1"
          },
          "userInfo": {
            "groups": [],
            "username": "the administrator"
          }
        }"#]]
    .assert_eq(&plain(&serde_json::to_string_pretty(&seen).unwrap(), &api.id));
    let review = &hook.seen("/a")[0];
    assert_eq!(
        (&review["kind"], &review["apiVersion"]),
        (&json!("AdmissionReview"), &json!("admission.k8s.io/v1"))
    );
    let object = &review["request"]["object"];
    assert_eq!(object["data"], json!({"k": "v"}));
    assert!(object["metadata"]["uid"].is_string() && object["metadata"]["creationTimestamp"].is_string());
    assert_eq!(object["metadata"]["managedFields"][0]["manager"], "me");
}

#[tokio::test]
async fn every_write_of_an_object_is_seen() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::allow()).await;
    for kind in ["mutating", "validating"] {
        let path = format!("/{kind}");
        let webhooks = json!([{
            "name": "a.webhook.test", "clientConfig": path, "rules": [rule("*", "*", "*", "*/*")]
        }]);
        hook.configure(&api, kind, "a", webhooks).await;
    }
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&maps, json!({"metadata": {"name": "a"}})).await.is(201);
    let generated = api.post(&maps, json!({"metadata": {"generateName": "b-"}})).await.is(201);
    let generated = generated.text_at("/metadata/name");
    let log = |path: &str| log(&hook, path, &api).replace(&generated, "b-SUFFIX");
    let a = format!("{maps}/a");
    api.put(&a, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.is(200);
    api.patch(&format!("{a}?fieldManager=p"), MERGE_PATCH, json!({"data": {"k": "w"}})).await.is(200);
    let apply =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {"k": "x"}});
    for code in [201, 200] {
        let request = api.request(Method::PATCH, &format!("{maps}/c?fieldManager=m&force=true"));
        request.body("application/apply-patch+yaml", apply.to_string()).send().await.is(code);
    }
    api.delete(&a).await.is(200);
    let options = json!({"propagationPolicy": "Background", "dryRun": ["All"]});
    api.delete_with(&maps, options).await.is(200);
    api.delete(&format!("{maps}/absent")).await.is(404);
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}});
    api.post(&pods, pod).await.is(201);
    let p = format!("{pods}/p");
    api.patch(&format!("{p}/status"), MERGE_PATCH, json!({"status": {"phase": "Pending"}})).await.is(200);
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    api.post(&format!("{p}/binding"), binding).await.is(201);
    let eviction = json!({"metadata": {"name": "p"}, "kind": "Eviction", "apiVersion": "policy/v1"});
    api.post(&format!("{p}/eviction"), eviction).await.is(201);
    api.delete_with(&p, json!({"gracePeriodSeconds": 0})).await.is(200);
    expect![[r#"
        CREATE v1/configmaps/- ConfigMap a in ns-ID: object ConfigMap, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        CREATE v1/configmaps/- ConfigMap b-SUFFIX in ns-ID: object ConfigMap, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        UPDATE v1/configmaps/- ConfigMap a in ns-ID: object ConfigMap, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
        UPDATE v1/configmaps/- ConfigMap a in ns-ID: object ConfigMap, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","fieldManager":"p","kind":"UpdateOptions"}
        CREATE v1/configmaps/- ConfigMap c in ns-ID: object ConfigMap, no oldObject, {"apiVersion":"meta.k8s.io/v1","fieldManager":"m","kind":"CreateOptions"}
        UPDATE v1/configmaps/- ConfigMap c in ns-ID: object ConfigMap, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","fieldManager":"m","kind":"UpdateOptions"}
        DELETE v1/configmaps/- ConfigMap a in ns-ID: no object, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions"}
        DELETE v1/configmaps/- ConfigMap - in ns-ID: no object, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","dryRun":["All"],"kind":"DeleteOptions","propagationPolicy":"Background"}
        CREATE v1/pods/- Pod p in ns-ID: object Pod, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        UPDATE v1/pods/status Pod p in ns-ID: object Pod, oldObject Pod, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
        CREATE v1/pods/binding Binding p in ns-ID: object Binding, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        CREATE v1/pods/eviction Eviction p in ns-ID: object Eviction, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        DELETE v1/pods/- Pod p in ns-ID: no object, oldObject Pod, {"apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":0,"kind":"DeleteOptions"}
    "#]].assert_eq(&log("/validating"));
    expect![[r#"
        CREATE v1/configmaps/- ConfigMap a in ns-ID: object ConfigMap, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        CREATE v1/configmaps/- ConfigMap - in ns-ID: object ConfigMap, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        UPDATE v1/configmaps/- ConfigMap a in ns-ID: object ConfigMap, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
        UPDATE v1/configmaps/- ConfigMap a in ns-ID: object ConfigMap, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","fieldManager":"p","kind":"UpdateOptions"}
        CREATE v1/configmaps/- ConfigMap c in ns-ID: object ConfigMap, no oldObject, {"apiVersion":"meta.k8s.io/v1","fieldManager":"m","kind":"CreateOptions"}
        UPDATE v1/configmaps/- ConfigMap c in ns-ID: object ConfigMap, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","fieldManager":"m","kind":"UpdateOptions"}
        DELETE v1/configmaps/- ConfigMap a in ns-ID: no object, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions"}
        DELETE v1/configmaps/- ConfigMap - in ns-ID: no object, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","dryRun":["All"],"kind":"DeleteOptions","propagationPolicy":"Background"}
        CREATE v1/pods/- Pod p in ns-ID: object Pod, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        UPDATE v1/pods/status Pod p in ns-ID: object Pod, oldObject Pod, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
        CREATE v1/pods/binding Binding p in ns-ID: object Binding, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        CREATE v1/pods/eviction Eviction p in ns-ID: object Eviction, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        DELETE v1/pods/- Pod p in ns-ID: no object, oldObject Pod, {"apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":0,"kind":"DeleteOptions"}
    "#]].assert_eq(&log("/mutating"));
}

/// The rules for one operation on ConfigMaps.
fn config_maps(operation: &str) -> Value {
    json!([rule(operation, "", "v1", "configmaps")])
}

#[tokio::test]
async fn mutating_webhooks_change_what_is_stored_in_the_order_of_their_configurations() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|path, review| {
        let order = review["request"]["object"]["data"]["order"].as_str().unwrap_or_default().to_owned();
        Answer::patch(json!([
            {"op": "add", "path": "/data/order", "value": order + path},
            {"op": "add", "path": "/metadata/labels", "value": {"from": "webhook"}},
        ]))
    })
    .await;
    let webhook = |name: &str| json!({"name": format!("{name}.webhook.test"), "clientConfig": format!("/{name}"), "rules": config_maps("*")});
    hook.configure(&api, "mutating", "z", json!([webhook("third")])).await;
    hook.configure(&api, "mutating", "b", json!([webhook("second"), webhook("first")])).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.is(201);
    created.shows(expect![[r#"
        201
        {
          "apiVersion": "v1",
          "data": {
            "k": "v",
            "order": "/second/first/third"
          },
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "labels": {
              "from": "webhook"
            },
            "managedFields": [
              "api-test Update v1: {'f:data':{'.':{},'f:k':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
    let fields = created.at("/metadata/managedFields").to_string();
    assert!(!fields.contains("f:order"), "what a webhook sets has no manager: {fields}");
    let updated = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"data": {"order": "-"}})).await.is(200);
    assert_eq!(updated.at("/data/order"), "-/second/first/third");
}

#[tokio::test]
async fn a_webhook_chooses_the_error() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, review| match &review["request"]["object"]["data"]["status"] {
        Value::String(status) => Answer::deny(serde_json::from_str(status).unwrap()),
        _ => Answer::Response(json!({"allowed": false})),
    })
    .await;
    let webhooks = json!([{"name": "a.webhook.test", "clientConfig": "/a", "rules": config_maps("CREATE")}]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let mut seen = Vec::new();
    for status in [
        json!(null),
        json!({}),
        json!({"message": "no", "code": 403, "reason": "Forbidden"}),
        json!({"reason": "Because", "code": 200, "status": "Success"}),
        json!({"message": "gone", "code": 599}),
        json!({"message": "bad", "code": 422, "reason": "Invalid", "details": {
            "name": "a", "group": "g", "kind": "k",
            "causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "data.x"}], "retryAfterSeconds": 3
        }}),
    ] {
        let data = if status.is_null() { json!({}) } else { json!({"status": status.to_string()}) };
        let object = json!({"metadata": {"name": "a"}, "data": data});
        let reply = api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), object).await;
        seen.push(format!("{status}: {reply}"));
    }
    expect![[r#"
        null: 400 -: admission webhook "a.webhook.test" denied the request without explanation
        {}: 400 -: admission webhook "a.webhook.test" denied the request without explanation
        {"code":403,"message":"no","reason":"Forbidden"}: 403 Forbidden: admission webhook "a.webhook.test" denied the request: no
        {"code":200,"reason":"Because","status":"Success"}: 400 Because: admission webhook "a.webhook.test" denied the request: Because
        {"code":599,"message":"gone"}: 599 -: admission webhook "a.webhook.test" denied the request: gone
        {"code":422,"details":{"causes":[{"field":"data.x","message":"m","reason":"FieldValueInvalid"}],"group":"g","kind":"k","name":"a","retryAfterSeconds":3},"message":"bad","reason":"Invalid"}: 422 Invalid: admission webhook "a.webhook.test" denied the request: bad
        group="g" kind="k" name="a" retryAfterSeconds=3
        - FieldValueInvalid data.x: m
    "#]].assert_eq(&lines(&seen));
}

/// The name of an object, and the webhook's answer about the object.
type Case = (&'static str, fn() -> Answer);

/// Creates a ConfigMap for each of these answers, and shows the replies.
async fn replies_to(kind: &str, answers: Vec<Case>, extra: Value) -> Vec<String> {
    let api = Api::start();
    let ns = api.namespace().await;
    let by_name = answers.clone();
    let hook = Webhook::start(move |_, review| {
        let name = review["request"]["name"].as_str().unwrap_or_default();
        by_name.iter().find(|(candidate, _)| *candidate == name).map_or(Answer::Never, |(_, answer)| answer())
    })
    .await;
    let mut webhook = json!({"name": "a.webhook.test", "clientConfig": "/a", "rules": config_maps("CREATE")});
    for (field, value) in extra.as_object().unwrap() {
        webhook[field] = value.clone();
    }
    hook.configure(&api, kind, "a", json!([webhook])).await;
    let mut seen = Vec::new();
    let address = format!("127.0.0.1:{}", hook.port());
    for (name, _) in answers {
        let object = json!({"metadata": {"name": name}});
        let reply = api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), object).await;
        seen.push(format!("{name}: {reply}").replace(&address, "ADDRESS"));
    }
    seen
}

fn raw(code: u16, content_type: &'static str, body: &str) -> Answer {
    Answer::Raw { code, content_type, body: body.to_owned() }
}

const JSON: &str = "application/json";

/// A review with this response, as text.
fn response(response: &str) -> Answer {
    let head = r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response":"#;
    raw(200, JSON, &format!("{head} {response}}}"))
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_an_internal_error() {
    let answers: Vec<Case> = vec![
        ("empty", || raw(200, JSON, "")),
        ("no-json", || raw(200, JSON, "no")),
        ("array", || raw(200, JSON, "[]")),
        ("no-response", || {
            raw(200, JSON, r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}"#)
        }),
        ("no-kind", || raw(200, JSON, r#"{"response": {"uid": "UID", "allowed": true}}"#)),
        ("other-kind", || {
            raw(
                200,
                JSON,
                r#"{"kind": "Pod", "apiVersion": "v1", "response": {"uid": "UID", "allowed": true}}"#,
            )
        }),
        ("no-uid", || {
            raw(
                200,
                JSON,
                r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"allowed": true}}"#,
            )
        }),
        ("patch-without-type", || Answer::Response(json!({"allowed": true, "patch": "W10="}))),
        ("type-without-patch", || Answer::Response(json!({"allowed": true, "patchType": "JSONPatch"}))),
        ("other-patch-type", || {
            Answer::Response(json!({"allowed": true, "patch": "W3t9XQ==", "patchType": "Merge"}))
        }),
        ("no-patch", || {
            Answer::Response(json!({"allowed": true, "patch": "e30=", "patchType": "JSONPatch"}))
        }),
        ("empty-patch", || {
            Answer::Response(json!({"allowed": true, "patch": "W10=", "patchType": "JSONPatch"}))
        }),
        ("patch-that-does-not-apply", || Answer::patch(json!([{"op": "remove", "path": "/data/x"}]))),
        ("patch-of-type", || Answer::patch(json!([{"op": "add", "path": "/data", "value": 1}]))),
        ("label-of-type", || {
            Answer::patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"a": 1}}]))
        }),
        ("patch-of-kind", || Answer::patch(json!([{"op": "replace", "path": "/kind", "value": "Secret"}]))),
        ("patch-of-namespace", || {
            Answer::patch(json!([{"op": "add", "path": "/metadata/namespace", "value": "x"}]))
        }),
        ("not-found", || raw(404, "text/plain", "nothing here")),
        ("error", || raw(500, "text/plain", "out of order\n")),
        ("error-in-json", || raw(500, JSON, r#"{"a": 1}"#)),
        ("unavailable", || raw(503, "text/plain", "later")),
        ("bad-request", || raw(400, "text/html", "<b>no</b>")),
        ("teapot", || raw(418, "text/plain", "short and stout")),
    ];
    let seen = replies_to("mutating", answers, json!({})).await;
    expect![[r#"
        empty: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: 0-length response with status code: 200 and content type: application/json
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: 0-length response with status code: 200 and content type: application/json
        no-json: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal bool into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal bool into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }
        array: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }
        no-response: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": received invalid webhook response: webhook response was absent
        - - -: failed calling webhook "a.webhook.test": received invalid webhook response: webhook response was absent
        no-kind: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=
        - - -: failed calling webhook "a.webhook.test": received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=
        other-kind: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"
        no-uid: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": received invalid webhook response: expected response.uid="UID", got ""
        - - -: failed calling webhook "a.webhook.test": received invalid webhook response: expected response.uid="UID", got ""
        patch-without-type: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": received invalid webhook response: webhook returned response.patch but not response.patchType
        - - -: failed calling webhook "a.webhook.test": received invalid webhook response: webhook returned response.patch but not response.patchType
        type-without-patch: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": received invalid webhook response: webhook returned response.patchType but not response.patch
        - - -: failed calling webhook "a.webhook.test": received invalid webhook response: webhook returned response.patchType but not response.patch
        other-patch-type: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": unsupported patch type "Merge"
        - - -: failed calling webhook "a.webhook.test": unsupported patch type "Merge"
        no-patch: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch
        - - -: failed calling webhook "a.webhook.test": received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch
        empty-patch: 201
        {
          "apiVersion": "v1",
          "kind": "ConfigMap",
          "metadata": {
            "creationTimestamp": "TIME",
            "name": "empty-patch",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }
        patch-that-does-not-apply: 500 InternalError: Internal error occurred: remove operation does not apply: doc is missing path: "/data/x": missing value
        - - -: remove operation does not apply: doc is missing path: "/data/x": missing value
        patch-of-type: 500 InternalError: Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string
        - - -: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string
        label-of-type: 500 InternalError: Internal error occurred: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string
        - - -: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string
        patch-of-kind: 500 -: converting (v1.Secret) to (core.ConfigMap): unknown conversion
        patch-of-namespace: 400 BadRequest: the namespace of the provided object does not match the namespace sent on the request
        not-found: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: the server could not find the requested resource
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: the server could not find the requested resource
        error: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: an error on the server ("out of order") has prevented the request from succeeding
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: an error on the server ("out of order") has prevented the request from succeeding
        error-in-json: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: an error on the server ("unknown") has prevented the request from succeeding
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: an error on the server ("unknown") has prevented the request from succeeding
        unavailable: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: the server is currently unable to handle the request
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: the server is currently unable to handle the request
        bad-request: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: the server rejected our request for an unknown reason
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: the server rejected our request for an unknown reason
        teapot: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: the server responded with the status code 418 but did not return more information
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: the server responded with the status code 418 but did not return more information
    "#]].assert_eq(&lines(&seen));
    let answers: Vec<Case> = vec![
        ("patch", || Answer::patch(json!([{"op": "add", "path": "/data", "value": {}}]))),
        ("type", || Answer::Response(json!({"allowed": true, "patchType": "JSONPatch"}))),
    ];
    let seen = replies_to("validating", answers, json!({})).await;
    expect![[r#"
        patch: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": received invalid webhook response: validating webhook may not return response.patch
        - - -: failed calling webhook "a.webhook.test": received invalid webhook response: validating webhook may not return response.patch
        type: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": received invalid webhook response: validating webhook may not return response.patchType
        - - -: failed calling webhook "a.webhook.test": received invalid webhook response: validating webhook may not return response.patchType
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_failure_is_ignored_if_the_policy_says_so_and_a_denial_is_not() {
    let answers: Vec<Case> = vec![
        ("error", || raw(500, "text/plain", "out of order")),
        ("no-json", || raw(200, JSON, "no")),
        ("patch-that-does-not-apply", || Answer::patch(json!([{"op": "remove", "path": "/data/x"}]))),
        ("denied", || Answer::deny(json!({"message": "no"}))),
    ];
    let seen = replies_to("mutating", answers, json!({"failurePolicy": "Ignore"})).await;
    let codes: Vec<&str> =
        seen.iter().map(|line| &line[..line.find(char::is_numeric).unwrap() + 3]).collect();
    assert_eq!(codes, ["error: 201", "no-json: 201", "patch-that-does-not-apply: 500", "denied: 400"]);
}

/// A guess of Go's that names another certificate.
const UNKNOWN_AUTHORITY: &str = r#" (possibly because of "x509: ECDSA verification failure" while trying to verify candidate authority certificate "rcgen self signed cert")"#;

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_fails() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start_for("other.test", |_, _| Answer::Never).await;
    // A port without a listener.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let other = Webhook::start(|_, _| Answer::allow()).await;
    let webhook = |name: &str, client: Value| {
        // Long enough for a loaded machine. The webhook that hangs uses up the time-out.
        let timeout = if name == "hangs" { 1 } else { 30 };
        json!({
            "name": format!("{name}.webhook.test"), "clientConfig": client, "timeoutSeconds": timeout,
            "rules": config_maps("CREATE"), "objectSelector": {"matchLabels": {"only": name}}
        })
    };
    let service =
        |name: &str| json!({"service": {"namespace": ns, "name": name}, "caBundle": hook.ca_bundle()});
    let webhooks = json!([
        webhook("hangs", hook.at("/a/b/")),
        webhook("closed", json!({"url": format!("https://{closed}/x"), "caBundle": hook.ca_bundle()})),
        webhook(
            "untrusted",
            json!({"url": format!("https://127.0.0.1:{}", hook.port()), "caBundle": other.ca_bundle()})
        ),
        webhook("system", json!({"url": format!("https://127.0.0.1:{}", hook.port())})),
        webhook("absent", service("absent")),
    ]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let mut seen = Vec::new();
    for name in ["hangs", "closed", "untrusted", "system", "absent"] {
        let object = json!({"metadata": {"name": "a", "labels": {"only": name}}});
        let start = Instant::now();
        let reply = api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), object).await;
        assert!(start.elapsed() < stretched(Duration::from_secs(8)));
        let text = format!("{name}: {reply}").replace(&hook.port().to_string(), "PORT");
        let text = text.replace(UNKNOWN_AUTHORITY, "");
        seen.push(text.replace(&closed.port().to_string(), "CLOSED"));
    }
    expect![[r#"
        hangs: 500 InternalError: Internal error occurred: failed calling webhook "hangs.webhook.test": failed to call webhook: Post "https://127.0.0.1:PORT/a/b?timeout=1s": context deadline exceeded
        - - -: failed calling webhook "hangs.webhook.test": failed to call webhook: Post "https://127.0.0.1:PORT/a/b?timeout=1s": context deadline exceeded
        closed: 500 InternalError: Internal error occurred: failed calling webhook "closed.webhook.test": failed to call webhook: Post "https://127.0.0.1:CLOSED/x?timeout=30s": dial tcp 127.0.0.1:CLOSED: connect: connection refused
        - - -: failed calling webhook "closed.webhook.test": failed to call webhook: Post "https://127.0.0.1:CLOSED/x?timeout=30s": dial tcp 127.0.0.1:CLOSED: connect: connection refused
        untrusted: 500 InternalError: Internal error occurred: failed calling webhook "untrusted.webhook.test": failed to call webhook: Post "https://127.0.0.1:PORT/?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority
        - - -: failed calling webhook "untrusted.webhook.test": failed to call webhook: Post "https://127.0.0.1:PORT/?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority
        system: 500 InternalError: Internal error occurred: failed calling webhook "system.webhook.test": failed to call webhook: Post "https://127.0.0.1:PORT/?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority
        - - -: failed calling webhook "system.webhook.test": failed to call webhook: Post "https://127.0.0.1:PORT/?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority
        absent: 500 InternalError: Internal error occurred: failed calling webhook "absent.webhook.test": failed to call webhook: Post "https://absent.ns-ID.svc:443/?timeout=30s": service "absent" not found
        - - -: failed calling webhook "absent.webhook.test": failed to call webhook: Post "https://absent.ns-ID.svc:443/?timeout=30s": service "absent" not found
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_service_with_an_external_name_is_called_by_the_name_of_the_service() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook =
        Webhook::start_for(&format!("hooks.{ns}.svc"), |_, _| Answer::deny(json!({"message": "called"})))
            .await;
    let service =
        json!({"metadata": {"name": "hooks"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    api.post(&format!("/api/v1/namespaces/{ns}/services"), service).await.is(201);
    let client = json!({
        "service": {"namespace": ns, "name": "hooks", "port": hook.port(), "path": "/in/service"},
        "caBundle": hook.ca_bundle()
    });
    let webhooks =
        json!([{"name": "a.webhook.test", "clientConfig": client, "rules": config_maps("CREATE")}]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let reply =
        api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), json!({"metadata": {"name": "a"}})).await;
    reply.shows(expect![[r#"400 -: admission webhook "a.webhook.test" denied the request: called"#]]);
    assert_eq!(hook.seen("/in/service").len(), 1);
}

#[tokio::test]
async fn a_service_without_endpoints_cannot_be_called() {
    let api = Api::start();
    if api.is_shared() {
        // The real server calls the cluster address. Without kube-proxy, no program answers there.
        return;
    }
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::allow()).await;
    let service = json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"name": "https", "port": 443}]}});
    api.post(&format!("/api/v1/namespaces/{ns}/services"), service).await.is(201);
    let client = json!({"service": {"namespace": ns, "name": "hooks"}, "caBundle": hook.ca_bundle()});
    let webhooks =
        json!([{"name": "a.webhook.test", "clientConfig": client, "rules": config_maps("CREATE")}]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let map = json!({"metadata": {"name": "a"}});
    let reply = api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), map).await;
    reply.shows(expect![[r#"
        500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: Post "https://hooks.ns-ID.svc:443/?timeout=10s": no endpoints available for service "hooks"
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: Post "https://hooks.ns-ID.svc:443/?timeout=10s": no endpoints available for service "hooks""#]]);
}

#[tokio::test]
async fn a_dry_run_is_not_sent_to_a_webhook_with_side_effects() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::allow()).await;
    // Only configurations of an older version may still have such a value; the closest that is accepted now is None.
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": config_maps("CREATE"), "sideEffects": "NoneOnDryRun"
    }]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps?dryRun=All");
    api.post(&path, json!({"metadata": {"name": "a"}})).await.is(201);
    let seen = hook.seen("/a");
    assert_eq!(seen[0]["request"]["dryRun"], true);
    assert_eq!(seen[0]["request"]["options"]["dryRun"], json!(["All"]));
}

#[tokio::test]
async fn warnings_reach_the_client_whether_the_request_is_allowed_or_not() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|path, review| {
        let name = review["request"]["name"].as_str().unwrap_or_default();
        Answer::Response(json!({
            "allowed": name == "a",
            "warnings": [format!("from {path}"), "twice", "twice", "", "x".repeat(3000)],
            "auditAnnotations": {"k": "v"},
        }))
    })
    .await;
    for kind in ["mutating", "validating"] {
        let webhooks = json!([{"name": "a.webhook.test", "clientConfig": format!("/{kind}"), "rules": config_maps("CREATE")}]);
        hook.configure(&api, kind, "a", webhooks).await;
    }
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let short = |reply: &Reply| -> Vec<String> {
        reply.warnings().iter().map(|warning| warning.chars().take(40).collect()).collect()
    };
    let allowed = api.post(&path, json!({"metadata": {"name": "a"}})).await.is(201);
    assert_eq!(short(&allowed).len(), 4, "{:?}", short(&allowed));
    let denied = api.post(&path, json!({"metadata": {"name": "b"}})).await.is(400);
    assert_eq!(short(&denied).len(), 3, "{:?}", short(&denied));
}

/// Returns a webhook for new ConfigMaps at the path `/NAME`, with a policy of reinvocation.
fn webhook(name: &str, policy: &str) -> Value {
    json!({
        "name": format!("{name}.webhook.test"), "clientConfig": format!("/{name}"),
        "rules": config_maps("CREATE"), "reinvocationPolicy": policy
    })
}

#[tokio::test]
async fn a_webhook_is_called_again_if_a_later_one_changed_the_object() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|path, review| {
        let data = &review["request"]["object"]["data"];
        match path {
            "/changes" if data["changed"].is_null() => {
                Answer::patch(json!([{"op": "add", "path": "/data/changed", "value": "yes"}]))
            }
            "/late" if data["late"].is_null() && data["k"] == "late" => {
                Answer::patch(json!([{"op": "add", "path": "/data/late", "value": "yes"}]))
            }
            _ => Answer::allow(),
        }
    })
    .await;
    let webhooks = json!([
        webhook("again", "IfNeeded"),
        webhook("never", "Never"),
        webhook("changes", "IfNeeded"),
        webhook("after", "IfNeeded"),
        webhook("late", "Never"),
    ]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.is(201);
    api.post(&path, json!({"metadata": {"name": "b"}, "data": {"k": "late"}})).await.is(201);
    api.post(&path, json!({"metadata": {"name": "c"}, "data": {"changed": "before"}})).await.is(201);
    expect![[r#"
        /again
        /never
        /changes
        /after
        /late
        /again
        /again
        /never
        /changes
        /after
        /late
        /again
        /changes
        /after
        /again
        /never
        /changes
        /after
        /late
    "#]]
    .assert_eq(&lines(&hook.paths()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_new_in_the_second_round_is_not_called() {
    let api = Api::start();
    let ns = api.namespace().await;
    let (configured, is_configured) = std::sync::mpsc::channel();
    let is_configured = std::sync::Mutex::new(is_configured);
    let hook = Webhook::start(move |path, _| match path {
        "/changes" => {
            tokio::task::block_in_place(|| is_configured.lock().unwrap().recv().unwrap());
            Answer::patch(json!([{"op": "add", "path": "/data/changed", "value": "yes"}]))
        }
        _ => Answer::allow(),
    })
    .await;
    let webhooks = json!([webhook("again", "IfNeeded"), webhook("changes", "Never")]);
    hook.configure(&api, "mutating", "b", webhooks).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let create = api.post(&path, json!({"metadata": {"name": "a"}, "data": {"k": "v"}}));
    let configure = async {
        while hook.seen("/changes").is_empty() {
            tokio::task::yield_now().await;
        }
        hook.configure(&api, "mutating", "a", json!([webhook("new", "IfNeeded")])).await;
        configured.send(()).unwrap();
    };
    let (created, ()) = tokio::join!(create, configure);
    created.is(201);
    assert_eq!(hook.paths(), ["/again", "/changes", "/again"]);
}

#[tokio::test]
async fn selectors_choose_by_the_labels_of_namespaces_and_of_either_object() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::allow()).await;
    let labelled = json!({"matchLabels": {"chosen": api.id}});
    let webhooks = json!([
        {"name": "object.webhook.test", "clientConfig": "/object", "objectSelector": labelled,
         "rules": [rule("*", "", "v1", "configmaps")]},
        {"name": "namespace.webhook.test", "clientConfig": "/namespace", "namespaceSelector": labelled,
         "rules": [rule("*", "", "v1", "*")]},
        {"name": "cluster.webhook.test", "clientConfig": "/cluster", "namespaceSelector": {}, "objectSelector": labelled,
         "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "Cluster"}]},
        {"name": "namespaced.webhook.test", "clientConfig": "/namespaced", "namespaceSelector": {}, "objectSelector": labelled,
         "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "Namespaced"}]},
    ]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&maps, json!({"metadata": {"name": "a"}})).await.is(201);
    let a = format!("{maps}/a");
    let chosen = json!({"metadata": {"labels": {"chosen": api.id}}});
    api.patch(&a, MERGE_PATCH, chosen.clone()).await.is(200);
    api.patch(&a, MERGE_PATCH, json!({"metadata": {"labels": {"chosen": null}}})).await.is(200);
    api.delete(&a).await.is(200);
    let other = api.namespace_named(&format!("other-{}", api.id)).await;
    api.patch(&format!("/api/v1/namespaces/{other}"), MERGE_PATCH, chosen).await.is(200);
    let others = format!("/api/v1/namespaces/{other}/configmaps");
    // The real server hears of the labels a moment later.
    let start = Instant::now();
    while !hook.seen("/namespace").iter().any(|review| review["request"]["name"] == "b") {
        assert!(start.elapsed() < stretched(Duration::from_secs(10)));
        api.post(&format!("{others}?dryRun=All"), json!({"metadata": {"name": "b"}})).await.is(201);
    }
    for path in ["/object", "/namespace", "/cluster", "/namespaced"] {
        let mut seen: Vec<String> = hook.seen(path).iter().map(line).collect();
        seen.dedup();
        let seen = plain(&lines(&seen), &api.id);
        match path {
            "/object" => expect![[r#"
                UPDATE v1/configmaps/- ConfigMap a in ns-ID: object ConfigMap, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
            "#]].assert_eq(&seen),
            "/namespace" => expect![[r#"
                UPDATE v1/namespaces/- Namespace other-ID in other-ID: object Namespace, oldObject Namespace, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
                CREATE v1/configmaps/- ConfigMap b in other-ID: object ConfigMap, no oldObject, {"apiVersion":"meta.k8s.io/v1","dryRun":["All"],"kind":"CreateOptions"}
            "#]].assert_eq(&seen),
            "/cluster" => expect![[r#"
                UPDATE v1/namespaces/- Namespace other-ID in other-ID: object Namespace, oldObject Namespace, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
            "#]].assert_eq(&seen),
            _ => expect![[r#"
                UPDATE v1/configmaps/- ConfigMap a in ns-ID: object ConfigMap, oldObject ConfigMap, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
            "#]].assert_eq(&seen),
        }
    }
}

fn widgets(id: &str) -> Value {
    let schema = |default: &str| {
        json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "colour": {"type": "string", "default": default}, "list": {
                "type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "b"}}}}
        }}}}})
    };
    json!({
        "metadata": {"name": format!("widgets.{id}.example.com")},
        "spec": {
            "group": format!("{id}.example.com"), "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema("red"),
                 "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}},
                {"name": "v2", "served": true, "storage": false, "schema": schema("red"), "subresources": {"status": {}}},
            ]
        }
    })
}

#[tokio::test]
async fn equivalent_requests_are_seen_in_the_version_of_the_rule() {
    let api = Api::start();
    let ns = api.namespace().await;
    let definition = api.crd(widgets(&api.id)).await;
    let group = definition["spec"]["group"].as_str().unwrap();
    let hook = Webhook::start(|path, review| match path {
        "/mutating" if review["request"]["operation"] != "DELETE" => {
            let version =
                review["request"]["object"]["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
            Answer::patch(json!([{"op": "add", "path": "/metadata/annotations", "value": {"seen": version}}]))
        }
        _ => Answer::allow(),
    })
    .await;
    let webhook = |name: &str, policy: &str, version: &str| {
        json!({
            "name": format!("{name}.webhook.test"), "clientConfig": format!("/{name}"), "matchPolicy": policy,
            "rules": [rule("*", group, version, "widgets"), rule("*", group, version, "widgets/status")]
        })
    };
    let validating = json!([webhook("exact", "Exact", "v1"), webhook("equivalent", "Equivalent", "v1")]);
    hook.configure(&api, "validating", "a", validating).await;
    hook.configure(&api, "mutating", "a", json!([webhook("mutating", "Equivalent", "v1")])).await;
    let path = format!("/apis/{group}/v2/namespaces/{ns}/widgets");
    let widget = json!({
        "kind": "Widget", "apiVersion": format!("{group}/v2"), "metadata": {"name": "a"}, "spec": {"size": 1}
    });
    let created = api.post(&path, widget).await.is(201);
    assert_eq!(created.at("/apiVersion"), format!("{group}/v2"));
    assert_eq!(created.at("/metadata/annotations/seen"), "v1");
    api.patch(&format!("{path}/a/status"), MERGE_PATCH, json!({"status": {"x": 1}})).await.is(200);
    api.delete(&format!("{path}/a")).await.is(200);
    assert_eq!(hook.seen("/exact"), Vec::<Value>::new());
    expect![[r#"
        CREATE v1/widgets/- Widget a in ns-ID: object Widget, no oldObject, {"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}
        UPDATE v1/widgets/status Widget a in ns-ID: object Widget, oldObject Widget, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
        DELETE v1/widgets/- Widget a in ns-ID: no object, oldObject Widget, {"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions"}
    "#]].assert_eq(&log(&hook, "/equivalent", &api));
    let request = &hook.seen("/equivalent")[0]["request"];
    assert_eq!(request["requestResource"]["version"], "v2");
    assert_eq!(request["requestKind"]["version"], "v2");
    assert_eq!(request["object"]["apiVersion"], format!("{group}/v1"));
}

#[tokio::test]
async fn what_a_webhook_adds_to_a_custom_resource_is_defaulted_pruned_and_validated() {
    let api = Api::start();
    let ns = api.namespace().await;
    let definition = api.crd(widgets(&api.id)).await;
    let group = definition["spec"]["group"].as_str().unwrap();
    let hook = Webhook::start(|_, review| match review["request"]["name"].as_str().unwrap() {
        "a" => Answer::patch(json!([
            {"op": "add", "path": "/spec/list", "value": [{}]},
            {"op": "add", "path": "/spec/unknown", "value": 1},
            {"op": "remove", "path": "/spec/colour"},
        ])),
        "b" => Answer::patch(json!([{"op": "add", "path": "/spec/size", "value": "big"}])),
        "d" => {
            Answer::patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"a": null, "b": "c"}}]))
        }
        _ => Answer::patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"a": 1}}])),
    })
    .await;
    let webhooks = json!([{"name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("CREATE", group, "v1", "widgets")]}]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let path = format!("/apis/{group}/v1/namespaces/{ns}/widgets");
    let mut seen = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let widget = json!({
            "kind": "Widget", "apiVersion": format!("{group}/v1"), "metadata": {"name": name}, "spec": {"size": 1}
        });
        seen.push(api.post(&path, widget).await.to_string());
    }
    expect![[r#"
        201
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update ID.example.com/v1: {'f:spec':{'.':{},'f:colour':{},'f:size':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "list": [
              {
                "a": "b"
              }
            ],
            "size": 1
          }
        }
        422 Invalid: Widget.ID.example.com "b" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="b"
        - FieldValueInvalid .spec.size: Invalid value: 0: .spec.size accessor error: big is of the type string, expected int64
        - FieldValueTypeInvalid spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"
        422 Invalid: Widget.ID.example.com "c" is invalid: metadata: Invalid value: {"creationTimestamp":"TIME","generation":1,"labels":{"a":1},"managedFields":[{"apiVersion":"ID.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:colour":{},"f:size":{}}},"manager":"api-test","operation":"Update","time":"TIME"}],"name":"c","namespace":"ns-ID","uid":"UID"}: cannot convert int64 to string
        group="ID.example.com" kind="Widget" name="c"
        - FieldValueInvalid metadata: Invalid value: {"creationTimestamp":"TIME","generation":1,"labels":{"a":1},"managedFields":[{"apiVersion":"ID.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:colour":{},"f:size":{}}},"manager":"api-test","operation":"Update","time":"TIME"}],"name":"c","namespace":"ns-ID","uid":"UID"}: cannot convert int64 to string
        201
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "labels": {
              "a": "",
              "b": "c"
            },
            "managedFields": [
              "api-test Update ID.example.com/v1: {'f:spec':{'.':{},'f:colour':{},'f:size':{}}}"
            ],
            "name": "d",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "size": 1
          }
        }
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_scale_is_seen_as_a_scale() {
    let api = Api::start();
    let ns = api.namespace().await;
    let definition = api.crd(widgets(&api.id)).await;
    let group = definition["spec"]["group"].as_str().unwrap();
    let hook = Webhook::start(|path, review| match path {
        "/mutating" if review["request"]["object"]["spec"]["replicas"] == 3 => {
            Answer::patch(json!([{"op": "replace", "path": "/spec/replicas", "value": 4}]))
        }
        _ => Answer::allow(),
    })
    .await;
    for kind in ["mutating", "validating"] {
        let webhooks = json!([{
            "name": "a.webhook.test", "clientConfig": format!("/{kind}"), "rules": [rule("*", "*", "*", "*/scale")]
        }]);
        hook.configure(&api, kind, "a", webhooks).await;
    }
    let path = format!("/apis/{group}/v1/namespaces/{ns}/widgets");
    let widget = json!({
        "kind": "Widget", "apiVersion": format!("{group}/v1"), "metadata": {"name": "a"}, "spec": {"size": 1}
    });
    api.post(&path, widget).await.is(201);
    let scaled =
        api.patch(&format!("{path}/a/scale"), MERGE_PATCH, json!({"spec": {"replicas": 3}})).await.is(200);
    assert_eq!(scaled.at("/spec/replicas"), 4);
    expect![[r#"
        UPDATE v1/widgets/scale Scale a in ns-ID: object Scale, oldObject Scale, {"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}
    "#]].assert_eq(&log(&hook, "/validating", &api));
    let request = &hook.seen("/validating")[0]["request"];
    assert_eq!(
        (&request["object"]["spec"]["replicas"], &request["oldObject"]["spec"]["replicas"]),
        (&json!(4), &json!(1))
    );
}

#[tokio::test]
async fn webhooks_do_not_see_their_configurations() {
    let api = Api::start();
    let hook = Webhook::start(|_, _| Answer::deny(json!({"message": "no"}))).await;
    let labelled = json!({"matchLabels": {"chosen": api.id}});
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "namespaceSelector": {}, "objectSelector": labelled,
        "rules": [rule("*", "*", "*", "*/*")]
    }]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let other = json!({"metadata": {"name": format!("b-{}", api.id), "labels": {"chosen": api.id}}});
    api.post(configurations, other).await.is(201);
    api.delete(&format!("{configurations}/b-{}", api.id)).await.is(200);
    let role = json!({"metadata": {"name": format!("r-{}", api.id), "labels": {"chosen": api.id}}});
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await.is(400);
    assert_eq!(hook.paths(), ["/a"]);
}

#[tokio::test]
async fn a_hanging_webhook_holds_nothing_up() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::Never).await;
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": config_maps("CREATE"), "timeoutSeconds": 2
    }]);
    hook.configure(&api, "validating", "a", webhooks).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let hanging = async {
        let names: Vec<Value> = (0..20).map(|n| json!({"metadata": {"name": format!("n{n}")}})).collect();
        let calls = names.into_iter().map(|object| api.post(&path, object));
        futures::future::join_all(calls).await
    };
    let others = async {
        let start = Instant::now();
        for n in 0..20 {
            let secret = json!({"metadata": {"name": format!("n{n}")}});
            api.post(&format!("/api/v1/namespaces/{ns}/secrets"), secret).await.is(201);
        }
        start.elapsed()
    };
    let start = Instant::now();
    let (hung, took) = futures::future::join(hanging, others).await;
    assert!(hung.iter().all(|reply| reply.code == 500));
    let limit = |seconds| stretched(Duration::from_secs(seconds));
    assert!(took < limit(2) && start.elapsed() < limit(8), "{took:?}");
}

#[tokio::test]
async fn a_webhook_may_ask_for_the_call_to_be_sent_again() {
    let api = Api::start();
    let ns = api.namespace().await;
    let calls = std::sync::atomic::AtomicU32::new(0);
    let hook = Webhook::start(move |path, review| match (path, &review["request"]["dryRun"]) {
        ("/soon", Value::Bool(false)) if calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2 => {
            Answer::Later(0)
        }
        ("/never", _) => Answer::Later(30),
        ("/always", _) => Answer::Later(0),
        _ => Answer::allow(),
    })
    .await;
    let webhook = |name: &str| {
        json!({
            "name": format!("{name}.webhook.test"), "clientConfig": format!("/{name}"), "timeoutSeconds": 2,
            "rules": config_maps("CREATE"), "objectSelector": {"matchLabels": {"only": name}}
        })
    };
    hook.configure(&api, "validating", "a", json!([webhook("soon"), webhook("never"), webhook("always")]))
        .await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let object = |name: &str| json!({"metadata": {"name": name, "labels": {"only": name}}});
    api.post(&path, object("soon")).await.is(201);
    assert_eq!(hook.seen("/soon").len(), 3);
    let mut seen = Vec::new();
    for name in ["never", "always"] {
        let reply = api.post(&path, object(name)).await.is(500).text_at("/message");
        seen.push(format!(
            "{} calls: {}",
            hook.seen(&format!("/{name}")).len(),
            reply.replace(&hook.port().to_string(), "PORT")
        ));
    }
    expect![[r#"
        1 calls: Internal error occurred: failed calling webhook "never.webhook.test": failed to call webhook: Post "https://127.0.0.1:PORT/never?timeout=2s": context deadline exceeded
        11 calls: Internal error occurred: failed calling webhook "always.webhook.test": failed to call webhook: the server has received too many requests and has asked us to try again later
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn an_answer_of_wrong_types_is_no_denial() {
    let answers: Vec<Case> = vec![
        ("allowed", || response(r#"{"uid": "UID", "allowed": "true"}"#)),
        ("response", || response(r#""yes""#)),
        ("uid", || response(r#"{"uid": 7, "allowed": true}"#)),
        ("status", || response(r#"{"uid": "UID", "allowed": false, "status": "no"}"#)),
        ("patch", || response(r#"{"uid": "UID", "allowed": true, "patch": 1}"#)),
        ("warnings", || response(r#"{"uid": "UID", "allowed": true, "warnings": [1]}"#)),
        ("a-warning", || response(r#"{"uid": "UID", "allowed": true, "warnings": "w"}"#)),
        ("annotations", || response(r#"{"uid": "UID", "allowed": true, "auditAnnotations": {"a": 1}}"#)),
        ("older", || {
            let body = r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "response": {"uid": "UID", "allowed": true}}"#;
            raw(200, JSON, body)
        }),
        ("a-status", || raw(200, JSON, r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure"}"#)),
        ("a-failure", || {
            let body = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "boom", "code": 409}"#;
            raw(409, JSON, body)
        }),
    ];
    let seen = replies_to("validating", answers, json!({})).await;
    expect![[r#"
        allowed: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool
        response: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionReview.response of type v1.AdmissionResponse
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionReview.response of type v1.AdmissionResponse
        uid: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.uid of type types.UID
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.uid of type types.UID
        status: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.status of type v1.Status
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.status of type v1.Status
        patch: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.patch of type []uint8
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.patch of type []uint8
        warnings: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.warnings of type string
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.warnings of type string
        a-warning: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.warnings of type []string
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.warnings of type []string
        annotations: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.auditAnnotations of type string
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.auditAnnotations of type string
        older: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion
        a-status: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: converting (v1.Status) to (v1.AdmissionReview): unknown conversion
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: converting (v1.Status) to (v1.AdmissionReview): unknown conversion
        a-failure: 500 InternalError: Internal error occurred: failed calling webhook "a.webhook.test": failed to call webhook: boom
        - - -: failed calling webhook "a.webhook.test": failed to call webhook: boom
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_patch_that_does_not_apply_is_explained() {
    let api = Api::start();
    let ns = api.namespace().await;
    let operations = [
        json!({"op": "remove", "path": "/data/a~1b"}),
        json!({"op": "remove", "path": "/spec/a"}),
        json!({"op": "replace", "path": "/spec/a", "value": 1}),
        json!({"op": "replace", "path": "", "value": null}),
        json!({"op": "replace", "path": "/metadata/finalizers/3", "value": "x"}),
        json!({"op": "remove", "path": "/metadata/finalizers/x"}),
        json!({"op": "remove", "path": "/metadata/finalizers/3"}),
        json!({"op": "move", "from": "/data/x", "path": "/data/y"}),
        json!({"op": "move", "from": "/spec/x", "path": "/data/y"}),
        json!({"op": "copy", "from": "/spec/x", "path": "/data/y"}),
        json!({"op": "test", "path": "/spec/x", "value": 1}),
        json!({"op": "test", "path": "/data/k", "value": 1}),
        json!({"op": "frob", "path": "/data/k"}),
        json!({"path": "/data/k"}),
        json!({"op": "remove", "path": "/kind"}),
        json!({"op": "remove", "path": "/apiVersion"}),
    ];
    let patches = operations.clone();
    let hook = Webhook::start(move |_, review| {
        let index: usize =
            review["request"]["name"].as_str().unwrap().trim_start_matches('n').parse().unwrap();
        Answer::patch(json!([patches[index]]))
    })
    .await;
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("CREATE", "", "v1", "configmaps")]
    }]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let mut seen = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let object = json!({
            "metadata": {"name": format!("n{index}"), "finalizers": ["a.test/b"]}, "data": {"k": "v"}
        });
        let reply = api.post(&format!("/api/v1/namespaces/{ns}/configmaps?dryRun=All"), object).await;
        let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
        let message = message.trim_start_matches("Internal error occurred: ").to_owned();
        let text = |field: &str| operation[field].as_str().unwrap_or("-").to_owned();
        seen.push(format!("{} {}: {} {message}", text("op"), text("path"), reply.code));
    }
    expect![[r#"
        remove /data/a~1b: 500 error in remove for path: '/data/a~1b': Unable to remove nonexistent key: a/b: missing value
        remove /spec/a: 500 remove operation does not apply: doc is missing path: "/spec/a": missing value
        replace /spec/a: 500 replace operation does not apply: doc is missing path: /spec/a: missing value
        replace : 500 replace operation value must be object or array: %!w(<nil>)
        replace /metadata/finalizers/3: 500 replace operation does not apply: doc is missing key: /metadata/finalizers/3: missing value
        remove /metadata/finalizers/x: 500 error in remove for path: '/metadata/finalizers/x': strconv.Atoi: parsing "x": invalid syntax
        remove /metadata/finalizers/3: 500 error in remove for path: '/metadata/finalizers/3': Unable to access invalid index: 3: invalid index referenced
        move /data/y: 500 error in move for path: 'x': Unable to remove nonexistent key: x: missing value
        move /data/y: 500 move operation does not apply: doc is missing from path: /spec/x: missing value
        copy /data/y: 500 copy operation does not apply: doc is missing from path: /spec/x: missing value
        test /spec/x: 500 test operation does not apply: is missing path: /spec/x: missing value
        test /data/k: 500 testing value /data/k failed: test failed
        frob /data/k: 500 Unexpected kind: frob
        - /data/k: 500 Unexpected kind: unknown
        remove /kind: 201 
        remove /apiVersion: 201 
    "#]].assert_eq(&lines(&seen));
}

/// A part of each line of [`what_a_configuration_may_say_is_validated`]: the optional fields of a webhook.
fn odd_webhooks() -> Vec<(&'static str, Value)> {
    let rules = |operations: &[&str], groups: &[&str], versions: &[&str], resources: &[&str]| {
        json!({"rules": [{
            "operations": operations, "apiGroups": groups, "apiVersions": versions, "resources": resources
        }]})
    };
    let of = |resources: &[&str]| rules(&["*"], &[""], &["v1"], resources);
    let expression = |operator: &str| json!({"matchExpressions": [{"key": "a b", "operator": operator}]});
    vec![
        ("operations", rules(&["FROB", ""], &[""], &["v1"], &["pods"])),
        ("all operations", rules(&["*", "CREATE"], &[""], &["v1"], &["pods"])),
        ("groups and versions", rules(&["*"], &["*", "a"], &["*", ""], &["pods"])),
        ("nothing", rules(&[], &[], &[], &[])),
        ("subresources", of(&["pods/*", "pods/status", "*/scale", "apps/scale", ""])),
        ("all subresources", of(&["*/*", "pods"])),
        ("all resources", of(&["*", "pods"])),
        ("the last resource", of(&["pods", "*"])),
        (
            "scope",
            json!({"rules": [{
                "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "All"
            }]}),
        ),
        ("reinvocation", json!({"reinvocationPolicy": "Often"})),
        ("selectors", json!({"namespaceSelector": expression("In"), "objectSelector": expression("Frob")})),
        ("labels", json!({"objectSelector": {"matchLabels": {"a": "b c"}}})),
        ("versions", json!({"admissionReviewVersions": ["v1", "v1", "a b"]})),
        (
            "policies",
            json!({"failurePolicy": "", "matchPolicy": "x", "sideEffects": "Some", "timeoutSeconds": 0}),
        ),
        (
            "conditions",
            json!({"matchConditions": [
                {"name": "a b", "expression": " "}, {"name": "x", "expression": "true"}, {"name": "x", "expression": "true"}
            ]}),
        ),
        ("name", json!({"name": ""})),
    ]
}

#[tokio::test]
async fn what_a_configuration_may_say_is_validated() {
    let api = Api::start();
    let mut seen = Vec::new();
    for (case, odd) in odd_webhooks() {
        let mut webhook = json!({
            "name": "a.webhook.test", "clientConfig": {"url": "https://localhost/"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "namespaceSelector": {"matchLabels": {"no": "namespace"}}
        });
        webhook.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
        for kind in ["mutating", "validating"] {
            if kind == "validating" && case == "reinvocation" {
                continue;
            }
            let path =
                format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations?dryRun=All");
            let body = json!({"metadata": {"name": format!("{}-odd", api.id)}, "webhooks": [webhook]});
            let reply = api.post(&path, body).await;
            let causes = reply.json()["details"]["causes"].as_array().cloned().unwrap_or_default();
            let causes = causes.iter().map(|cause| {
                let text = |field: &str| cause[field].as_str().unwrap_or("").to_owned();
                let message = text("message")
                    .split(": a ")
                    .next()
                    .unwrap()
                    .split(": name part")
                    .next()
                    .unwrap()
                    .to_owned();
                format!("  {} {message}", text("field").trim_start_matches("webhooks[0]."))
            });
            let causes: Vec<_> = std::iter::once(format!("{case}: {}", reply.code)).chain(causes).collect();
            if kind == "mutating" {
                seen.extend(causes);
            } else {
                assert_eq!(seen[seen.len() - causes.len()..], causes, "{case}");
            }
        }
    }
    expect![[r#"
        operations: 422
          rules[0].operations[0] Unsupported value: "FROB": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"
          rules[0].operations[1] Unsupported value: "": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"
        all operations: 422
          rules[0].operations Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations
        groups and versions: 422
          rules[0].apiGroups Invalid value: ["*","a"]: if '*' is present, must not specify other API groups
          rules[0].apiVersions Invalid value: ["*",""]: if '*' is present, must not specify other API versions
          rules[0].apiVersions[1] Required value
        nothing: 422
          rules[0].operations Required value
          rules[0].apiGroups Required value
          rules[0].apiVersions Required value
          rules[0].resources Required value
        subresources: 422
          rules[0].resources[1] Invalid value: "pods/status": if 'pods/*' is present, must not specify pods/status
          rules[0].resources[3] Invalid value: "apps/scale": if '*/scale' is present, must not specify apps/scale
          rules[0].resources[4] Required value
        all subresources: 422
          rules[0].resources Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources
        all resources: 422
          rules[0].resources Invalid value: ["*","pods"]: if '*' is present, must not specify other resources without subresources
        the last resource: 201
        scope: 422
          rules[0].scope Unsupported value: "All": supported values: "*", "Cluster", "Namespaced"
        reinvocation: 422
          reinvocationPolicy Unsupported value: "Often": supported values: "IfNeeded", "Never"
        selectors: 422
          namespaceSelector.matchExpressions[0].values Required value: must be specified when `operator` is 'In' or 'NotIn'
          namespaceSelector.matchExpressions[0].key Invalid value: "a b"
          objectSelector.matchExpressions[0].operator Invalid value: "Frob": not a valid selector operator
          objectSelector.matchExpressions[0].key Invalid value: "a b"
        labels: 422
          objectSelector.matchLabels Invalid value: "b c"
        versions: 422
          admissionReviewVersions[1] Invalid value: "v1": duplicate version
          admissionReviewVersions[2] Invalid value: "a b"
        policies: 422
          failurePolicy Unsupported value: "": supported values: "Fail", "Ignore"
          matchPolicy Unsupported value: "x": supported values: "Equivalent", "Exact"
          sideEffects Unsupported value: "Some": supported values: "None", "NoneOnDryRun"
          timeoutSeconds Invalid value: 0: the timeout value must be between 1 and 30 seconds
        conditions: 422
          matchConditions[0].expression Required value
          matchConditions[0].name Invalid value: "a b"
          matchConditions[2].name Duplicate value: "x"
        name: 422
          name Required value
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn an_apply_is_stored_at_its_path_whatever_name_a_webhook_gives() {
    let hook = Webhook::start(|_, _| {
        Answer::patch(json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]))
    })
    .await;
    let api = Api::start();
    let ns = api.namespace().await;
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("CREATE", "", "v1", "pods")]
    }]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, pod("x")).await.is(201);
    // The name `other` is taken now.
    let applied = api.patch(&format!("{path}/y?fieldManager=m"), APPLY, pod("y")).await.is(201);
    assert_eq!(applied.text_at("/metadata/name"), "other");
    assert_eq!(api.get(&format!("{path}/y")).await.is(200).text_at("/metadata/name"), "other");
}

#[tokio::test]
async fn no_webhook_is_called_for_an_object_with_another_uid() {
    let hook = Webhook::start(|_, _| Answer::deny(json!({"message": "no"}))).await;
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, pod("x")).await.is(201);
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("UPDATE", "", "v1", "pods")]
    }]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let mut body = pod("x");
    body["metadata"]["uid"] = json!("11111111-1111-4111-8111-111111111111");
    api.put(&format!("{path}/x"), body).await.is(409);
    let mut account = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    account["metadata"] = json!({"name": "none"});
    let webhooks = json!([{
        "name": "b.webhook.test", "clientConfig": "/b", "rules": [rule("CREATE", "", "v1", "serviceaccounts/token")]
    }]);
    hook.configure(&api, "validating", "b", webhooks).await;
    api.post(&format!("/api/v1/namespaces/{ns}/serviceaccounts/none/token"), account).await.is(404);
}

#[tokio::test]
async fn the_version_of_a_new_object_is_read_after_webhooks() {
    let hook = Webhook::start(|_, _| Answer::deny(json!({"message": "no", "code": 403}))).await;
    let api = Api::start();
    let ns = api.namespace().await;
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("CREATE", "", "v1", "services")]
    }]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", "resourceVersion": "x"}, "spec": {"ports": [{"port": 80}]}
    });
    api.put(&format!("/api/v1/namespaces/{ns}/services/x"), service).await.is(403);
}
