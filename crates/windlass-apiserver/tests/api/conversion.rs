//! Conversion webhooks: the calls, the reviews, and the allowed changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use windlass_apiserver::Server;

use crate::fixtures::widgets;
use crate::harness::{Answer, Api, MERGE_PATCH, Webhook, lines, plain, rule};

/// A definition whose versions differ: `spec.size` of v1 is `spec.dimensions.size` of v2. v1 is stored.
fn boxes(id: &str, hook: &Webhook) -> Value {
    let v1 = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "colour": {"type": "string", "default": "red"}
    }}, "status": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    let v2 = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "dimensions": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "colour": {"type": "string"}
    }}, "status": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    json!({
        "metadata": {"name": format!("boxes.{id}.example.com")},
        "spec": {
            "group": format!("{id}.example.com"), "scope": "Namespaced",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v7", "v1", "v1beta1"], "clientConfig": hook.at("/convert")
            }},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": v1},
                 "subresources": {"status": {}}},
                {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": v2},
                 "subresources": {"status": {}}, "selectableFields": [{"jsonPath": ".spec.dimensions.size"}]},
            ]
        }
    })
}

/// Converts an object like the definition.
fn converted(object: &Value, wanted: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(wanted);
    let spec = object["spec"].as_object_mut().unwrap();
    if wanted.ends_with("/v2") {
        if let Some(size) = spec.remove("size") {
            spec.insert("dimensions".into(), json!({"size": size}));
        }
    } else if let Some(dimensions) = spec.remove("dimensions") {
        spec.insert("size".into(), dimensions["size"].clone());
    }
    object
}

fn convert_all(review: &Value) -> Vec<Value> {
    let request = &review["request"];
    let objects = request["objects"].as_array().unwrap().iter();
    objects.map(|object| converted(object, request["desiredAPIVersion"].as_str().unwrap())).collect()
}

/// Converts all objects of a review, and then changes each object.
fn convert_and_change(review: &Value, change: impl FnMut(&mut Value)) -> Answer {
    let mut objects = convert_all(review);
    objects.iter_mut().for_each(change);
    Answer::Converted(objects)
}

/// A namespace, and the paths of the boxes in it in both versions.
async fn setting(api: &Api, hook: &Webhook) -> (String, String) {
    let ns = api.namespace().await;
    api.crd(boxes(&api.id, hook)).await;
    let path = |version: &str| format!("/apis/{}.example.com/{version}/namespaces/{ns}/boxes", api.id);
    (path("v1"), path("v2"))
}

fn a_box(api: &Api, version: &str, name: &str, spec: Value) -> Value {
    json!({
        "kind": "Box", "apiVersion": format!("{}.example.com/{version}", api.id),
        "metadata": {"name": name}, "spec": spec
    })
}

#[tokio::test]
async fn objects_are_read_and_written_in_every_version() {
    let api = Api::start();
    let hook = Webhook::start(|_, review| Answer::Converted(convert_all(review))).await;
    let (v1, v2) = setting(&api, &hook).await;
    let mut seen = Vec::new();
    let created = api.post(&v2, a_box(&api, "v2", "a", json!({"dimensions": {"size": 3}, "x": 1}))).await;
    seen.push(created.to_string());
    seen.push(api.get(&format!("{v1}/a")).await.to_string());
    let mut updated = api.get(&format!("{v2}/a")).await.is(200).json();
    updated["spec"]["dimensions"]["size"] = json!(4);
    seen.push(api.put(&format!("{v2}/a"), updated).await.is(200).at("/spec").to_string());
    let patch = json!({"spec": {"dimensions": {"size": 5}, "colour": "blue"}});
    seen.push(api.patch(&format!("{v2}/a"), MERGE_PATCH, patch).await.is(200).at("/spec").to_string());
    let status = json!({"status": {"n": 1}});
    let status = api.patch(&format!("{v2}/a/status"), MERGE_PATCH, status).await.is(200);
    seen.push(status.at("/status").to_string());
    let apply = a_box(&api, "v2", "a", json!({"dimensions": {"size": 6}}));
    let request = api.request(Method::PATCH, &format!("{v2}/a?fieldManager=m&force=true"));
    let applied = request.body("application/apply-patch+yaml", apply.to_string()).send().await.is(200);
    seen.push(applied.at("/spec").to_string());
    seen.push(api.get(&format!("{v1}/a")).await.is(200).at("/spec").to_string());
    seen.push(api.get(&v2).await.is(200).at("/items/0/spec").to_string());
    seen.push(api.get(&v1).await.is(200).at("/items/0/spec").to_string());
    let selected = api.get(&format!("{v2}?fieldSelector=spec.dimensions.size%3D6")).await.is(200);
    seen.push(format!("{:?}", selected.names()));
    let dry = json!({"spec": {"dimensions": {"size": 7}}});
    let dry = api.patch(&format!("{v2}/a?dryRun=All"), MERGE_PATCH, dry).await.is(200);
    seen.push(dry.at("/spec").to_string());
    seen.push(api.delete(&format!("{v2}/a")).await.is(200).at("/status").to_string());
    expect![[r#"
        201
        Warning: 299 - "unknown field \"spec.x\""
        {
          "apiVersion": "ID.example.com/v2",
          "kind": "Box",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update ID.example.com/v2: {'f:spec':{'.':{},'f:dimensions':{'.':{},'f:size':{}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "dimensions": {
              "size": 3
            }
          }
        }
        200
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Box",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update ID.example.com/v2: {'f:spec':{'.':{},'f:dimensions':{'.':{},'f:size':{}}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "size": 3
          }
        }
        {"colour":"red","dimensions":{"size":4}}
        {"colour":"blue","dimensions":{"size":5}}
        {"n":1}
        {"colour":"blue","dimensions":{"size":6}}
        {"colour":"blue","size":6}
        {"colour":"blue","dimensions":{"size":6}}
        {"colour":"blue","size":6}
        ["a"]
        {"colour":"blue","dimensions":{"size":7}}
        "Success"
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_review_names_the_version_wanted() {
    let api = Api::start();
    let hook = Webhook::start(|_, review| Answer::Converted(convert_all(review))).await;
    let (v1, v2) = setting(&api, &hook).await;
    api.post(&v1, a_box(&api, "v1", "a", json!({"size": 1}))).await.is(201);
    if !api.is_shared() {
        // The cache of the real server converts each new object.
        assert_eq!(hook.seen("/convert").len(), 0, "the stored version is not converted");
    }
    api.get(&format!("{v2}/a")).await.is(200);
    let mut review = hook.seen("/convert").remove(0);
    let object = review["request"]["objects"][0].as_object_mut().unwrap();
    for field in ["managedFields", "creationTimestamp", "uid", "resourceVersion"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    let shown = serde_json::to_string_pretty(&review).unwrap();
    expect![[r#"
        {
          "apiVersion": "apiextensions.k8s.io/v1",
          "kind": "ConversionReview",
          "request": {
            "desiredAPIVersion": "ID.example.com/v2",
            "objects": [
              {
                "apiVersion": "ID.example.com/v1",
                "kind": "Box",
                "metadata": {
                  "generation": 1,
                  "name": "a",
                  "namespace": "ns-ID"
                },
                "spec": {
                  "colour": "red",
                  "size": 1
                }
              }
            ],
            "uid": "UID"
          },
          "response": {
            "convertedObjects": null,
            "result": {
              "metadata": {}
            },
            "uid": ""
          }
        }"#]]
    .assert_eq(&plain(&shown, &api.id));
}

#[tokio::test]
async fn a_conversion_to_many_megabytes_is_refused() {
    let api = Api::start();
    if api.is_shared() {
        return;
    }
    let hook = Webhook::start(|_, review| {
        convert_and_change(review, |object| {
            let size = object["spec"]["dimensions"]["size"].as_u64().unwrap_or_default();
            object["spec"]["colour"] = "x".repeat(usize::try_from(size).unwrap() << 20).into();
        })
    });
    let (v1, v2) = setting(&api, &hook.await).await;
    for (name, size) in [("large", 2), ("huge", 4)] {
        api.post(&v1, a_box(&api, "v1", name, json!({"size": size}))).await.is(201);
    }
    let large = api.get(&format!("{v2}/large")).await.is(200);
    assert_eq!(large.text_at("/spec/colour").len(), 2 << 20);
    let huge = api.get(&format!("{v2}/huge")).await.is(500).text_at("/message");
    assert!(huge.ends_with("Original error: length limit exceeded"), "{huge}");
}

#[tokio::test]
async fn many_small_objects_may_become_kilobytes_in_one_call() {
    const COUNT: usize = 600;
    let api = Api::start();
    if api.is_shared() {
        // The real server converts each object of a list separately.
        return;
    }
    let hook = Webhook::start(|_, review| {
        convert_and_change(review, |object| object["spec"]["colour"] = "x".repeat(9 << 10).into())
    });
    let hook = hook.await;
    let (v1, v2) = setting(&api, &hook).await;
    for n in 0..COUNT {
        api.post(&v1, a_box(&api, "v1", &format!("n{n}"), json!({}))).await.is(201);
    }
    assert_eq!(api.get(&v2).await.is(200).names().len(), COUNT);
    assert_eq!(hook.seen("/convert").len(), 1);
}

#[tokio::test]
async fn a_list_is_one_call_and_is_converted_once() {
    let api = Api::start();
    if api.is_shared() {
        // The real server converts each object of a list separately, and keeps the objects in the cache of
        // the watch.
        return;
    }
    let hook = Webhook::start(|_, review| Answer::Converted(convert_all(review))).await;
    let (v1, v2) = setting(&api, &hook).await;
    for n in 0..30 {
        api.post(&v1, a_box(&api, "v1", &format!("n{n}"), json!({"size": n}))).await.is(201);
    }
    let counts = || -> Vec<usize> {
        let seen = hook.seen("/convert");
        seen.iter().map(|review| review["request"]["objects"].as_array().unwrap().len()).collect()
    };
    assert_eq!(api.get(&v2).await.is(200).names().len(), 30);
    assert_eq!(counts(), [30]);
    api.get(&format!("{v2}?fieldSelector=spec.dimensions.size%3D7")).await.is(200);
    api.get(&format!("{v2}/n3")).await.is(200);
    assert_eq!(counts(), [30], "what was converted is kept");
    let mut watches = Vec::new();
    for _ in 0..20 {
        let version = api.get(&v1).await.version();
        watches.push(api.watch(&format!("{v2}?resourceVersion={version}")).await);
    }
    api.patch(&format!("{v1}/n3"), MERGE_PATCH, json!({"spec": {"size": 99}})).await.is(200);
    for watch in &mut watches {
        let event = watch.next().await;
        assert_eq!(event.object["spec"]["dimensions"]["size"], 99);
    }
    assert_eq!(counts(), [30, 1], "one conversion serves all watches");
}

#[tokio::test]
async fn watches_see_their_version() {
    let api = Api::start();
    let hook = Webhook::start(|_, review| Answer::Converted(convert_all(review))).await;
    let (v1, v2) = setting(&api, &hook).await;
    api.post(&v1, a_box(&api, "v1", "a", json!({"size": 1}))).await.is(201);
    let mut watch = api.watch(&v2).await;
    let mut seen = vec![watch.next().await];
    api.patch(&format!("{v1}/a"), MERGE_PATCH, json!({"spec": {"size": 2}})).await.is(200);
    seen.push(watch.next().await);
    api.delete(&format!("{v1}/a")).await.is(200);
    seen.push(watch.next().await);
    let seen: Vec<String> =
        seen.iter().map(|event| format!("{} {}", event.kind, event.object["spec"])).collect();
    expect![[r#"
        ADDED {"colour":"red","dimensions":{"size":1}}
        MODIFIED {"colour":"red","dimensions":{"size":2}}
        DELETED {"colour":"red","dimensions":{"size":2}}
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_webhook_may_change_labels_and_annotations_and_no_other_metadata() {
    let api = Api::start();
    let hook = Webhook::start(|_, review| {
        let mut objects = convert_all(review);
        let metadata = objects[0]["metadata"].as_object_mut().unwrap();
        metadata.insert("labels".into(), json!({"l": "converted"}));
        metadata.insert("annotations".into(), json!({"a": "converted"}));
        metadata.insert("finalizers".into(), json!(["example.com/x"]));
        metadata.insert("generation".into(), json!(77));
        metadata.remove("creationTimestamp");
        Answer::Converted(objects)
    })
    .await;
    let (v1, v2) = setting(&api, &hook).await;
    api.post(&v1, a_box(&api, "v1", "a", json!({"size": 1}))).await.is(201);
    let shown = api.get(&format!("{v2}/a")).await.is(200);
    shown.shows(expect![[r#"
        200
        {
          "apiVersion": "ID.example.com/v2",
          "kind": "Box",
          "metadata": {
            "annotations": {
              "a": "converted"
            },
            "creationTimestamp": "TIME",
            "generation": 1,
            "labels": {
              "l": "converted"
            },
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
            "dimensions": {
              "size": 1
            }
          }
        }"#]]);
}

fn raw(body: &str) -> Answer {
    Answer::Raw { code: 200, content_type: "application/json", body: body.to_owned() }
}

/// One wrong answer for each name.
fn wrong(review: &Value) -> Answer {
    let mut objects = convert_all(review);
    let name = objects[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let uid = review["request"]["uid"].clone();
    let answer = |kind: &str, version: &str, response: Value| {
        raw(&json!({"kind": kind, "apiVersion": version, "response": response}).to_string())
    };
    let (kind, version) = ("ConversionReview", "apiextensions.k8s.io/v1");
    let first = &mut objects[0];
    match name.as_str() {
        "empty" => return raw(""),
        "error" => return Answer::Raw { code: 500, content_type: "text/plain", body: "out of order".into() },
        "no-response" => return answer(kind, version, Value::Null),
        "other-kind" => return answer("AdmissionReview", "admission.k8s.io/v1", json!({})),
        "other-uid" => {
            return answer(kind, version, json!({"uid": "1", "result": {"status": "Success"}}));
        }
        "objects-of-type" => {
            let result = json!({"status": "Success"});
            return answer(kind, version, json!({"uid": uid, "result": result, "convertedObjects": "x"}));
        }
        "failed" => {
            let result = json!({"status": "Failure", "message": "cannot convert"});
            return answer(kind, version, json!({"uid": uid, "result": result}));
        }
        "failed-silently" => return answer(kind, version, json!({"uid": uid, "result": {}})),
        "too-few" => return Answer::Converted(Vec::new()),
        "other-version" => first["apiVersion"] = json!("example.com/v3"),
        "other-object" => first["kind"] = json!("Other"),
        "other-name" => first["metadata"]["name"] = json!("x"),
        "other-namespace" => first["metadata"]["namespace"] = json!("x"),
        "new-uid" => first["metadata"]["uid"] = json!("x"),
        "no-metadata" => {
            first.as_object_mut().unwrap().remove("metadata");
        }
        "bad-label" => first["metadata"]["labels"] = json!({"a b": "c"}),
        "label-of-type" => first["metadata"]["labels"] = json!({"a": 1}),
        "labels-of-type" => first["metadata"]["labels"] = json!([]),
        _ => {}
    }
    Answer::Converted(objects)
}

const WRONG: [&str; 18] = [
    "empty",
    "error",
    "no-response",
    "other-kind",
    "other-uid",
    "failed",
    "failed-silently",
    "objects-of-type",
    "too-few",
    "other-version",
    "other-object",
    "other-name",
    "other-namespace",
    "new-uid",
    "no-metadata",
    "bad-label",
    "label-of-type",
    "labels-of-type",
];

#[tokio::test]
async fn what_is_no_conversion_is_an_error() {
    let api = Api::start();
    let hook = Webhook::start(|_, review| wrong(review)).await;
    let (v1, v2) = setting(&api, &hook).await;
    let revision = regex::Regex::new(r"revision=\d+").unwrap();
    let mut seen = Vec::new();
    for name in WRONG {
        api.post(&v1, a_box(&api, "v1", name, json!({"size": 1}))).await.is(201);
        let port = hook.port().to_string();
        let reply = api.get(&format!("{v2}/{name}")).await.to_string().replace(&port, "PORT");
        let message = revision.replace(reply.lines().next().unwrap(), "revision=RV");
        seen.push(format!("{name}: {message}"));
        api.delete(&format!("{v1}/{name}")).await.is(200);
    }
    seen.push(api.post(&v2, a_box(&api, "v2", "failed", json!({}))).await.to_string());
    api.post(&v1, a_box(&api, "v1", "failed", json!({"size": 1}))).await.is(201);
    let change = api.patch(&format!("{v2}/failed"), MERGE_PATCH, json!({})).await.is(500).text_at("/message");
    assert!(change.starts_with("object not decodable revision="), "{change}");
    expect![[r#"
        empty: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/empty, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: 0-length response with status code: 200 and content type: application/json
        error: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/error, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: an error on the server ("out of order") has prevented the request from succeeding
        no-response: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/no-response, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: no response provided
        other-kind: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/other-kind, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: no kind "AdmissionReview" is registered for version "admission.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"
        other-uid: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/other-uid, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: expected response.uid="UID", got "1"
        failed: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/failed, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: cannot convert
        failed-silently: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/failed-silently, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: response.result.status was '', not 'Success'
        objects-of-type: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/objects-of-type, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: json: cannot unmarshal string into Go struct field ConversionResponse.response.convertedObjects of type []runtime.RawExtension
        too-few: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/too-few, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned 0 objects, expected 1
        other-version: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/other-version, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid object at index 0: invalid groupVersion (expected ID.example.com/v2, received example.com/v3)
        other-object: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/other-object, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid object at index 0: invalid kind (expected Box, received Other)
        other-name: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/other-name, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid object: must have the same name: other-name != x
        other-namespace: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/other-namespace, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid object: must have the same namespace: ns-ID != x
        new-uid: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/new-uid, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid object: must have the same UID: UID != x
        no-metadata: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/no-metadata, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid object: must have the same name: no-metadata != 
        bad-label: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/bad-label, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid metadata: metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        label-of-type: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/label-of-type, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object
        labels-of-type: 500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /ID.example.com/boxes/ns-ID/labels-of-type, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned invalid metadata: invalid metadata.labels of type []interface {} in converted object
        500 -: conversion webhook for ID.example.com/v2, Kind=Box failed: cannot convert
    "#]].assert_eq(&lines(&seen));
}

/// Starts a webhook that converts until the returned switch is set, and then fails.
async fn breakable() -> (Webhook, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&broken);
    let hook = Webhook::start(move |_, review| {
        if is_broken.load(Ordering::SeqCst) {
            return Answer::Raw { code: 500, content_type: "text/plain", body: "broken".into() };
        }
        Answer::Converted(convert_all(review))
    });
    (hook.await, broken)
}

#[tokio::test]
async fn a_broken_webhook_stops_other_versions_but_not_the_deletion_of_the_definition() {
    let api = Api::start();
    let (hook, broken) = breakable().await;
    let (v1, v2) = setting(&api, &hook).await;
    api.post(&v2, a_box(&api, "v2", "a", json!({"dimensions": {"size": 3}}))).await.is(201);
    broken.store(true, Ordering::SeqCst);
    api.post(&v2, a_box(&api, "v2", "b", json!({"dimensions": {"size": 3}}))).await.is(500);
    api.get(&format!("{v1}/a")).await.is(200);
    api.post(&v1, a_box(&api, "v1", "c", json!({"size": 3}))).await.is(201);
    api.get(&format!("{v2}/c")).await.is(500);
    let definition =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boxes.{}.example.com", api.id);
    api.delete(&definition).await.is(200);
    api.eventually(&definition, |reply| reply.code == 404).await;
}

#[tokio::test]
async fn a_broken_webhook_blocks_no_deletion() {
    // Always embedded: the real server deletes nothing that a webhook does not convert.
    let api = Api::embedded(&Server::builder().build().unwrap());
    let (hook, broken) = breakable().await;
    let (v1, v2) = setting(&api, &hook).await;
    let mut held = a_box(&api, "v1", "held", json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    for object in [held, a_box(&api, "v1", "a", json!({})), a_box(&api, "v1", "b", json!({}))] {
        api.post(&v1, object).await.is(201);
    }
    broken.store(true, Ordering::SeqCst);
    // The reply cannot show the object in the version of the request.
    let deleted = api.delete(&format!("{v2}/held")).await.is(200);
    assert_eq!([deleted.at("/kind"), deleted.at("/status")], ["Status", "Success"]);
    assert!(!api.get(&format!("{v1}/held")).await.at("/metadata/deletionTimestamp").is_null());
    api.delete(&format!("{v2}/a")).await.is(200);
    // The controller of namespaces lists metadata, and deletes collections.
    api.get(&v2).await.is(500);
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let listed = api.request(Method::GET, &v2).accept(metadata).send().await.is(200);
    assert_eq!(listed.names(), ["b", "held"]);
    assert_eq!(api.delete(&v2).await.is(200).names(), ["b", "held"]);
    assert_eq!(api.get(&v1).await.is(200).names(), ["held"]);
}

#[tokio::test]
async fn a_watch_has_ten_objects_converted_at_once() {
    let api = Api::start();
    let (ten, calls) = (Arc::new(Barrier::new(10)), AtomicUsize::new(0));
    let hook = Webhook::start(move |_, review| match calls.fetch_add(1, Ordering::SeqCst) {
        0..10 => Answer::Together(Arc::clone(&ten), convert_all(review)),
        _ => Answer::Converted(convert_all(review)),
    })
    .await;
    let (v1, v2) = setting(&api, &hook).await;
    let before = api.get(&v1).await.version();
    let names: Vec<String> = (0..10).map(|number| format!("box-{number}")).collect();
    for name in &names {
        api.post(&v1, a_box(&api, "v1", name, json!({"size": 1}))).await.is(201);
    }
    let mut watch = api.watch(&format!("{v2}?resourceVersion={before}")).await;
    let added: Vec<String> = names.iter().map(|name| format!("ADDED {name}")).collect();
    assert_eq!(watch.take(10).await, added);
}

#[tokio::test]
async fn a_list_names_the_objects_that_no_webhook_converts() {
    let api = Api::start();
    let hook = Webhook::start(|_, review| wrong(review)).await;
    let (v1, v2) = setting(&api, &hook).await;
    // The cache of the real server begins with this list.
    api.eventually(&v2, |reply| reply.code == 200).await;
    for name in ["failed", "good", "too-few", "error"] {
        api.post(&v1, a_box(&api, "v1", name, json!({"size": 1}))).await.is(201);
    }
    let revision = regex::Regex::new(r"revision=\d+").unwrap();
    let mut seen = Vec::new();
    for query in ["", "?limit=1", "?limit=2&resourceVersion="] {
        // The cache of the real server is not ready at times.
        let reply = api.eventually(&format!("{v2}{query}"), |reply| reply.code == 500).await.to_string();
        seen.push(revision.replace_all(&reply, "revision=RV").into_owned());
    }
    let good = api.get(&format!("{v2}?limit=9&fieldSelector=metadata.name%3Dgood")).await.is(200).names();
    assert_eq!(good, ["good"]);
    // Any state is good enough: the state before the first of these objects.
    let cached = api.eventually(&format!("{v2}?resourceVersion=0"), |reply| reply.code == 200).await;
    assert!(cached.names().is_empty(), "{cached}");
    expect![[r#"
        500 StorageReadError: failed to read one or more boxes.ID.example.com from the storage: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/error, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: an error on the server ("out of order") has prevented the request from succeeding (and 2 more)
        group="ID.example.com" kind="boxes" name="list"
        - UnexpectedServerResponse /registry/ID.example.com/boxes/ns-ID/error: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/error, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: an error on the server ("out of order") has prevented the request from succeeding
        - UnexpectedServerResponse /registry/ID.example.com/boxes/ns-ID/failed: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/failed, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: cannot convert
        - UnexpectedServerResponse /registry/ID.example.com/boxes/ns-ID/too-few: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/too-few, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box returned 0 objects, expected 1
        500 StorageReadError: failed to read one or more boxes.ID.example.com from the storage: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/error, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: an error on the server ("out of order") has prevented the request from succeeding
        group="ID.example.com" kind="boxes" name="list"
        - UnexpectedServerResponse /registry/ID.example.com/boxes/ns-ID/error: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/error, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: an error on the server ("out of order") has prevented the request from succeeding
        500 StorageReadError: failed to read one or more boxes.ID.example.com from the storage: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/error, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: an error on the server ("out of order") has prevented the request from succeeding (and 1 more)
        group="ID.example.com" kind="boxes" name="list"
        - UnexpectedServerResponse /registry/ID.example.com/boxes/ns-ID/error: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/error, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: an error on the server ("out of order") has prevented the request from succeeding
        - UnexpectedServerResponse /registry/ID.example.com/boxes/ns-ID/failed: StorageError: corrupt object, Code: 7, Key: /registry/ID.example.com/boxes/ns-ID/failed, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=RV: conversion webhook for ID.example.com/v1, Kind=Box failed: cannot convert
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_list_of_any_state_shows_the_state_before_all_objects_that_no_webhook_converts() {
    let api = Api::start();
    let is_broken = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&is_broken);
    let hook = Webhook::start(move |_, review| {
        if broken.load(Ordering::SeqCst) {
            return Answer::Raw { code: 500, content_type: "text/plain", body: "broken".into() };
        }
        Answer::Converted(convert_all(review))
    })
    .await;
    let (v1, v2) = setting(&api, &hook).await;
    api.post(&v1, a_box(&api, "v1", "good", json!({"size": 1}))).await.is(201);
    api.eventually(&v2, |reply| reply.names() == ["good"]).await;
    is_broken.store(true, Ordering::SeqCst);
    // An error names the first objects by name, and the earliest object is the last by name.
    for number in (0..250).rev() {
        api.post(&v1, a_box(&api, "v1", &format!("x{number:03}"), json!({"size": 1}))).await.is(201);
    }
    let cached = api.eventually(&format!("{v2}?resourceVersion=0"), |reply| reply.code == 200).await;
    assert_eq!(cached.names(), ["good"]);
}

#[tokio::test]
async fn an_object_that_no_webhook_converts_can_be_removed() {
    let api = Api::start();
    let hook = Webhook::start(|_, review| wrong(review)).await;
    let (v1, v2) = setting(&api, &hook).await;
    for name in ["good", "failed"] {
        let mut object = a_box(&api, "v1", name, json!({"size": 1}));
        object["metadata"]["finalizers"] = json!(["example.com/held"]);
        api.post(&v1, object).await.is(201);
    }
    let option = "ignoreStoreReadErrorWithClusterBreakingPotential";
    let with = |field: &str, value: Value| json!({option: true, field: value});
    let failed = format!("{v2}/failed");
    let mut seen = Vec::new();
    for options in [
        json!({option: "true"}),
        with("propagationPolicy", json!("Orphan")),
        with("orphanDependents", json!(false)),
        with("gracePeriodSeconds", json!(0)),
        with("preconditions", json!({"uid": "u"})),
    ] {
        seen.push(api.delete_with(&failed, options).await.to_string());
    }
    seen.push(api.delete(&format!("{failed}?{option}=true&gracePeriodSeconds=1")).await.to_string());
    seen.push(api.delete_with(&v2, json!({option: true})).await.to_string());
    seen.push(api.delete_with(&format!("{v2}/absent"), json!({option: true})).await.to_string());
    seen.push(api.delete_with(&format!("{v2}/good"), json!({option: true})).await.to_string());
    let all = json!([{"apiGroups": [format!("{}.example.com", api.id)], "resources": ["boxes"], "verbs": ["delete"]}]);
    let jane = user_with(&api, all).await;
    seen.push(jane.delete_with(&failed, json!({option: true})).await.to_string());
    seen.push(api.delete_with(&failed, json!({option: true, "dryRun": ["All"]})).await.to_string());
    api.get(&format!("{v1}/failed")).await.is(200);
    let before = api.get(&v1).await.json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    seen.push(api.delete_with(&failed, json!({option: true})).await.to_string());
    api.get(&format!("{v1}/failed")).await.is(404);
    // A client lists again: a later watch cannot show the deletion either. On the real server, the cache of the resource gets
    // the error, and the watch of the client ends.
    if !api.is_shared() {
        let event = api.watch(&format!("{v2}?resourceVersion={before}")).await.next().await;
        assert_eq!((&event.kind[..], &event.object["reason"]), ("ERROR", &json!("StorageReadError")));
    }
    api.patch(&format!("{v1}/good"), MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
    expect![[r#"
        400 BadRequest: json: cannot unmarshal string into Go struct field DeleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential of type bool
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .propagationPolicy
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueInvalid ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .propagationPolicy
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .orphanDependents
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueInvalid ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .orphanDependents
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .gracePeriodSeconds
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueInvalid ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .gracePeriodSeconds
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .preconditions
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueInvalid ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .preconditions
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .gracePeriodSeconds
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueInvalid ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .gracePeriodSeconds
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option
        group="meta.k8s.io" kind="DeleteOptions"
        - FieldValueInvalid ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option
        404 NotFound: boxes.ID.example.com "absent" not found
        group="ID.example.com" kind="boxes" name="absent"
        409 Conflict: Operation cannot be fulfilled on boxes.ID.example.com "good": StorageError: invalid object, Code: 4, Key: /registry/ID.example.com/boxes/ns-ID/good, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage
        group="ID.example.com" kind="boxes" name="good"
        403 Forbidden: boxes.ID.example.com "failed" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: 
        group="ID.example.com" kind="boxes" name="failed"
        200
        {
          "apiVersion": "v1",
          "code": 200,
          "details": {
            "kind": "Box",
            "name": "failed"
          },
          "kind": "Status",
          "metadata": {},
          "status": "Success"
        }
        200
        {
          "apiVersion": "v1",
          "code": 200,
          "details": {
            "kind": "Box",
            "name": "failed"
          },
          "kind": "Status",
          "metadata": {},
          "status": "Success"
        }
    "#]].assert_eq(&lines(&seen));
}

/// A user with these rights in the test's namespace.
async fn user_with(api: &Api, rules: Value) -> Api {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/ns-{}", api.id);
    let group = "rbac.authorization.k8s.io";
    let name = format!("jane-{}", api.id);
    api.post(&format!("{rbac}/roles"), json!({"metadata": {"name": "r"}, "rules": rules})).await.is(201);
    let binding = json!({
        "metadata": {"name": "r"}, "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}]
    });
    api.post(&format!("{rbac}/rolebindings"), binding).await.is(201);
    let jane = api.impersonating(&name, &[]);
    let start = std::time::Instant::now();
    let probe = format!("/apis/{0}.example.com/v1/namespaces/ns-{0}/boxes/absent", api.id);
    while jane.delete(&probe).await.code == 403 {
        assert!(start.elapsed() < crate::harness::deadline(), "the rights have no effect");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    jane
}

#[tokio::test]
async fn admission_sees_converted_objects() {
    let api = Api::start();
    let hook = Webhook::start(|path, review| match path {
        "/convert" => Answer::Converted(convert_all(review)),
        _ => Answer::allow(),
    })
    .await;
    let (_, v2) = setting(&api, &hook).await;
    let group = format!("{}.example.com", api.id);
    let webhooks = json!([{"name": "a.webhook.test", "clientConfig": "/admit", "rules": [rule("*", &group, "v1", "boxes")]}]);
    hook.configure(&api, "validating", "a", webhooks).await;
    api.post(&v2, a_box(&api, "v2", "a", json!({"dimensions": {"size": 3}}))).await.is(201);
    let request = &hook.seen("/admit")[0]["request"];
    assert_eq!(request["object"]["spec"]["size"], 3);
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v1"), &json!("v2"))
    );
}

#[tokio::test]
async fn the_webhook_of_a_conversion_is_validated() {
    let api = Api::start();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let refused = async |conversion: Value| {
        let mut definition = widgets(&api);
        definition["spec"]["conversion"] = conversion;
        api.post(path, definition).await.is(422).at("/details/causes").as_array().unwrap().len()
    };
    let config = json!({"url": "https://localhost/x"});
    let webhook = json!({"clientConfig": config, "conversionReviewVersions": ["v1"]});
    assert_eq!(refused(json!({"strategy": "Odd", "webhook": webhook})).await, 3);
    let unknown = json!({"clientConfig": config, "conversionReviewVersions": ["a b"]});
    assert_eq!(refused(json!({"strategy": "Webhook", "webhook": unknown})).await, 2);
    let twice = json!({"clientConfig": config, "conversionReviewVersions": ["v1", "v1"]});
    assert_eq!(refused(json!({"strategy": "Webhook", "webhook": twice})).await, 1);
    for (config, causes) in [
        (json!({"url": "http://u@x/?q"}), 3),
        (json!({"url": "https://a b"}), 1),
        (json!({}), 1),
        (json!({"service": {"name": "", "namespace": "n", "path": "a//B"}}), 5),
    ] {
        let webhook = json!({"clientConfig": config, "conversionReviewVersions": ["v1"]});
        assert_eq!(refused(json!({"strategy": "Webhook", "webhook": webhook})).await, causes, "{config}");
    }
}
