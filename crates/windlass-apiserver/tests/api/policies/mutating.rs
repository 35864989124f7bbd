//! Mutating policies: apply configurations, operations on JSON, and the second round.

use expect_test::expect;
use serde_json::{Value, json};
use windlass_apiserver::Server;

use super::Policies;
use crate::harness::{Answer, Api, Webhook, lines, plain, rule};

fn configuration(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn operations(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[tokio::test]
async fn apply_configurations_are_merged() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let mutations = json!([
        configuration(
            "Object{metadata: Object.metadata{labels: {'a': 'b', 'c': string(object.data.size())}}, data: {'k': 'new'}}"
        ),
        configuration("Object{metadata: Object.metadata{annotations: {'seen': object.metadata.labels.c}}}"),
    ]);
    policies.add("labels", json!({"mutations": mutations}), json!({})).await;
    let created = policies.try_config_map("a", json!({"k": "old", "l": "kept"})).await.is(201);
    assert_eq!(created.at("/data"), json!({"k": "new", "l": "kept"}));
    assert_eq!(created.at("/metadata/labels"), json!({"a": "b", "c": "2"}));
    assert_eq!(created.at("/metadata/annotations"), json!({"seen": "2"}));
}

fn deployments() -> Value {
    json!([{"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}])
}

fn deployment(containers: Value) -> Value {
    let labels = json!({"app": "x"});
    json!({
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        }
    })
}

#[tokio::test]
async fn lists_with_keys_are_merged_by_key() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let sidecar = "Object{spec: Object.spec{replicas: 7, template: Object.spec.template{spec: Object.spec.template.spec{containers: [
        Object.spec.template.spec.containers{name: 'main', env: [Object.spec.template.spec.containers.env{name: 'A', value: 'b'}]},
        Object.spec.template.spec.containers{name: 'side', image: 'sidecar'}
    ]}}}}";
    let spec =
        json!({"mutations": [configuration(sidecar)], "matchConstraints": {"resourceRules": deployments()}});
    policies.create("sidecar", spec, json!({})).await;
    policies.wait().await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments?dryRun=All", policies.namespace);
    let created = api.post(&path, deployment(json!([{"name": "main", "image": "x"}]))).await.is(201);
    assert_eq!(created.at("/spec/replicas"), 7);
    let containers = created.at("/spec/template/spec/containers");
    let shown: Vec<String> = containers
        .as_array()
        .unwrap()
        .iter()
        .map(|container| {
            format!(
                "{} {} {} {}",
                container["name"], container["image"], container["env"], container["imagePullPolicy"]
            )
        })
        .collect();
    expect![[r#"
        "main" "x" [{"name":"A","value":"b"}] "Always"
        "side" "sidecar" null "Always"
    "#]]
    .assert_eq(&lines(&shown));
}

#[tokio::test]
async fn operations_on_json_are_applied() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let mutations = json!([
        operations("[
            JSONPatch{op: 'test', path: '/data/k', value: 'old'},
            JSONPatch{op: 'replace', path: '/data/k', value: 'new'},
            JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}},
            JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('x/y~z').replace('~1', '.').replace('~0', '-'), value: '1'},
            JSONPatch{op: 'copy', from: '/data/k', path: '/data/copy'}
        ]"),
        operations("has(object.data.stop) ? [JSONPatch{op: 'test', path: '/data/k', value: 'other'}, JSONPatch{op: 'remove', path: '/data/k'}] : []"),
        operations("object.data.size() > 4 ? [JSONPatch{op: 'add', path: '/data/many', value: string(object.data.size())}] : []"),
    ]);
    policies.add("operations", json!({"mutations": mutations}), json!({})).await;
    let mut seen = Vec::new();
    for data in [
        json!({"k": "old"}),
        json!({"k": "old", "stop": ""}),
        json!({"k": "another"}),
        json!({"k": "old", "b": "", "c": ""}),
    ] {
        let reply = policies.try_config_map("a", data.clone()).await.is(201);
        seen.push(format!("{data}: {} {}", reply.at("/data"), reply.at("/metadata/labels")));
    }
    expect![[r#"
        {"k":"old"}: {"copy":"new","k":"new","x.y-z":"1"} {"a":"b"}
        {"k":"old","stop":""}: {"copy":"new","k":"new","stop":"","x.y-z":"1"} {"a":"b"}
        {"k":"another"}: {"k":"another"} null
        {"b":"","c":"","k":"old"}: {"b":"","c":"","copy":"new","k":"new","many":"5","x.y-z":"1"} {"a":"b"}
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_patch_that_does_not_apply_is_a_failure() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let cases = [
        ("atomic", configuration("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}")),
        ("unknown", configuration("Object{spec: Object.spec{frob: 1}}")),
        ("type", configuration("Object{spec: Object.spec{replicas: 'x'}}")),
        ("names", configuration("Object{spec: Object.other{replicas: 1}}")),
        ("twice", configuration("Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [
            Object.spec.template.spec.containers{name: 'a'}, Object.spec.template.spec.containers{name: 'a'}]}}}}")),
        ("error", configuration("Object{spec: Object.spec{replicas: int(object.metadata.name)}}")),
        ("remove", operations("[JSONPatch{op: 'remove', path: '/spec/frob'}]")),
        ("field", operations("[JSONPatch{op: 'add', path: '/spec/frob', value: 1}]")),
        ("op", operations("[JSONPatch{op: 'frob', path: '/spec'}]")),
        ("value", operations("[JSONPatch{op: 'add', path: '/spec/template', value: Object.spec.other{}}]")),
    ];
    for (case, mutation) in &cases {
        let selector = json!({"matchLabels": {"case": case}});
        let spec = json!({
            "mutations": [mutation], "matchConstraints": {"resourceRules": deployments(), "objectSelector": selector}
        });
        policies.create(case, spec, json!({})).await;
    }
    policies.wait().await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments?dryRun=All", policies.namespace);
    let mut seen = Vec::new();
    for (case, _) in &cases {
        let mut object = deployment(json!([{"name": "main", "image": "x"}]));
        object["metadata"]["labels"] = json!({"case": case});
        let reply = api.post(&path, object).await;
        let (reason, message) = (reply.at("/reason"), reply.at("/message"));
        let text = message.as_str().unwrap_or_default();
        seen.push(plain(
            &format!("{case}: {} {} {text}", reply.code, reason.as_str().unwrap_or_default()),
            &api.id,
        ));
    }
    expect![[r#"
        atomic: 403 Invalid policy 'atomic-ID' with binding 'atomic-ID' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector
        unknown: 403 Invalid policy 'unknown-ID' with binding 'unknown-ID' denied request: error applying patch: failed to convert patch object to typed object: .spec.frob: field not declared in schema
        type: 403 Invalid policy 'type-ID' with binding 'type-ID' denied request: error applying patch: failed to convert patch object to typed object: .spec.replicas: expected numeric (int or float), got string
        names: 403 Invalid policy 'names-ID' with binding 'names-ID' denied request: type mismatch: unexpected type name "Object.other", expected "Object.spec", which matches field name path from root Object type
        twice: 403 Invalid policy 'twice-ID' with binding 'twice-ID' denied request: error applying patch: failed to convert patch object to typed object: .spec.template.spec.containers: duplicate entries for key [name="a"]
        error: 403 Invalid policy 'error-ID' with binding 'error-ID' denied request: expression 'Object{spec: Object.spec{replicas: int(object.metadata.name)}}' resulted in error: type conversion error from 'string' to 'int'
        remove: 403 Invalid policy 'remove-ID' with binding 'remove-ID' denied request: JSON Patch: error in remove for path: '/spec/frob': Unable to remove nonexistent key: frob: missing value
        field: 500 InternalError Internal error occurred: strict decoding error: unknown field "spec.frob"
        op: 403 Invalid policy 'op-ID' with binding 'op-ID' denied request: JSON Patch: Unexpected kind: frob
        value: 422 Invalid Deployment.apps "a" is invalid: [spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`, spec.template.spec.containers: Required value]
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_failure_has_the_reasons_of_all_policies() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let spec = |policy: &str| {
        json!({
            "failurePolicy": policy,
            "mutations": [configuration("Object{data: {'a': object.data.absent}}"), configuration("Object{data: {'b': '1'}}")],
        })
    };
    policies.add("fails", spec("Fail"), json!({})).await;
    policies.try_config_map("a", json!({"k": "v"})).await.shows(expect![[r#"
        403 Invalid: policy 'fails-ID' with binding 'fails-ID' denied request: expression 'Object{data: {'a': object.data.absent}}' resulted in error: no such key: absent
        kind="configmaps" name="a"
        - - -: policy 'fails-ID' with binding 'fails-ID' denied request: expression 'Object{data: {'a': object.data.absent}}' resulted in error: no such key: absent"#]]);
    let binding = format!("{}/mutatingadmissionpolicybindings/fails-{}", super::GROUP, api.id);
    api.delete(&binding).await.is(200);
    policies.add("ignores", spec("Ignore"), json!({})).await;
    let created = policies.try_config_map("a", json!({"k": "v"})).await.is(201);
    assert_eq!(created.at("/data"), json!({"k": "v", "b": "1"}), "the other mutation is applied");
}

#[tokio::test]
async fn a_later_change_runs_a_policy_again() {
    let api = Api::start_over_tls();
    let policies = Policies::new(&api, "mutating").await;
    let count = |key: &str| {
        let expression =
            format!("Object{{data: {{'{key}': string(int(object.?data[?'{key}'].orValue('0')) + 1)}}}}");
        json!({
        "mutations": [configuration(&expression)],
        })
    };
    let mut once = count("once");
    once["reinvocationPolicy"] = json!("Never");
    let mut again = count("again");
    again["reinvocationPolicy"] = json!("IfNeeded");
    policies.create("once", once, json!({})).await;
    policies.add("again", again, json!({})).await;
    let created = policies.try_config_map("a", json!({})).await.is(201);
    expect![[r#"{"again":"2","once":"1"}"#]].assert_eq(&created.at("/data").to_string());
    let hook = Webhook::start(|_, review| {
        let seen = review["request"]["object"]["data"].clone();
        Answer::patch(json!([{"op": "add", "path": "/data/seen", "value": seen.to_string()}]))
    })
    .await;
    let webhooks = json!([{
        "name": "a.webhook.test", "clientConfig": "/a", "rules": [rule("CREATE", "", "v1", "configmaps")]
    }]);
    hook.configure(&api, "mutating", "a", webhooks).await;
    let created = policies.try_config_map("a", json!({})).await.is(201);
    expect![[r#"{"again":"2","once":"1","seen":"{\"again\":\"1\",\"once\":\"1\"}"}"#]]
        .assert_eq(&created.at("/data").to_string());
}

#[tokio::test]
async fn custom_resources_are_patched_by_their_schema() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let group = format!("{}.example.com", api.id);
    let items = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 5}}});
    let keyed = json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    let spec = json!({"type": "object", "properties": {"parts": keyed, "plain": {"type": "array", "items": {"type": "string"}}}});
    api.crd(json!({
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]
        }
    }))
    .await;
    let rules = json!([{"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["*"], "resources": ["things"]}]);
    let mutations = json!([
        configuration(
            "Object{spec: Object.spec{parts: [Object.spec.parts{name: 'b'}, Object.spec.parts{name: 'c'}]}}"
        ),
        operations("[JSONPatch{op: 'add', path: '/spec/plain/-', value: 'z'}]"),
    ]);
    policies
        .create(
            "things",
            json!({"mutations": mutations, "matchConstraints": {"resourceRules": rules}}),
            json!({}),
        )
        .await;
    policies.wait().await;
    let path = format!("/apis/{group}/v1/namespaces/{}/things?dryRun=All", policies.namespace);
    let object = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"parts": [{"name": "a", "size": 1}, {"name": "b", "size": 2}], "plain": ["y"]}
    });
    // The real server learns the schema of a new definition after some seconds.
    let start = std::time::Instant::now();
    let created = loop {
        let reply = api.post(&path, object.clone()).await;
        if reply.code != 503 || start.elapsed() > crate::harness::deadline() {
            break reply.is(201);
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    expect![[
        r#"{"parts":[{"name":"a","size":1},{"name":"b","size":2},{"name":"c","size":5}],"plain":["y","z"]}"#
    ]]
    .assert_eq(&created.at("/spec").to_string());
}

#[tokio::test]
async fn an_object_that_cannot_be_decoded_is_a_failure() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let limits = "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [
        Object.spec.template.spec.containers{name: 'main', resources: Object.spec.template.spec.containers.resources{limits: {'cpu': 'x'}}}
    ]}}}}";
    for policy in ["Fail", "Ignore"] {
        let selector = json!({"matchLabels": {"policy": policy}});
        let spec = json!({
            "failurePolicy": policy, "mutations": [configuration(limits)],
            "matchConstraints": {"resourceRules": deployments(), "objectSelector": selector},
        });
        policies.create(&policy.to_lowercase(), spec, json!({})).await;
    }
    policies.wait().await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments?dryRun=All", policies.namespace);
    let mut object = deployment(json!([{"name": "main", "image": "x"}]));
    object["metadata"]["labels"] = json!({"policy": "Ignore"});
    api.post(&path, object.clone()).await.is(201);
    object["metadata"]["labels"] = json!({"policy": "Fail"});
    let reply = api.post(&path, object).await.is(403);
    assert_eq!(reply.at("/reason"), "Invalid");
}

#[tokio::test]
async fn mutations_cannot_use_memory_without_end() {
    let api = Api::embedded(&Server::builder().build().unwrap());
    let policies = Policies::new(&api, "mutating").await;
    let cases = [
        (
            "values",
            operations(
                "lists.range(100).map(i, JSONPatch{op: 'add', path: '/data/k', value: object.data.a})",
            ),
        ),
        (
            "paths",
            operations("lists.range(100).map(i, JSONPatch{op: 'test', path: object.data.a, value: 1})"),
        ),
        (
            "operations",
            operations("lists.range(10001).map(i, JSONPatch{op: 'add', path: '/data/k', value: 'v'})"),
        ),
        (
            "object",
            configuration(
                "Object{data: {'b': object.data.a, 'c': object.data.a, 'd': object.data.a, 'e': object.data.a}}",
            ),
        ),
    ];
    for (case, mutation) in &cases {
        let selector = json!({"matchLabels": {"case": case}});
        let spec = json!({"mutations": [mutation], "matchConstraints": {"objectSelector": selector}});
        policies.create(case, spec, json!({})).await;
    }
    policies.wait().await;
    let path = format!("{}?dryRun=All", policies.config_maps());
    let mut seen = Vec::new();
    for (case, _) in &cases {
        let metadata = json!({"name": "a", "labels": {"case": case}});
        let reply = api.post(&path, json!({"metadata": metadata, "data": {"a": "x".repeat(700_000)}})).await;
        let message = reply.at("/message");
        let text = message.as_str().unwrap_or_default();
        seen.push(plain(&format!("{case}: {} {text}", reply.code), &api.id));
    }
    expect![[r#"
        values: 403 policy 'values-ID' with binding 'values-ID' denied request: JSONPath valueExpression evaluated to a type that could not marshal to JSON: operation cancelled: the result is too large
        paths: 403 policy 'paths-ID' with binding 'paths-ID' denied request: operation cancelled: the result is too large
        operations: 403 policy 'operations-ID' with binding 'operations-ID' denied request: the allowed maximum operations in a JSON patch is 10000, got 10001
        object: 500 etcdserver: request is too large
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn an_object_that_cannot_be_converted_is_a_failure() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let hook =
        Webhook::start(|_, _| Answer::Raw { code: 500, content_type: "text/plain", body: "broken".into() })
            .await;
    let group = format!("{}.example.com", api.id);
    let version = |name: &str, is_stored: bool| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": is_stored, "schema": {"openAPIV3Schema": schema}})
    };
    api.crd(json!({
        "metadata": {"name": format!("boxes.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": hook.at("/convert")
            }},
            "versions": [version("v1", true), version("v2", false)]
        }
    }))
    .await;
    let rules = json!([{"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v2"], "resources": ["boxes"]}]);
    for policy in ["Fail", "Ignore"] {
        let selector = json!({"matchLabels": {"policy": policy}});
        let spec = json!({
            "failurePolicy": policy, "mutations": [configuration("Object{a: 'b'}")],
            "matchConstraints": {"resourceRules": rules, "objectSelector": selector},
        });
        policies.create(&policy.to_lowercase(), spec, json!({})).await;
    }
    policies.wait().await;
    let path = format!("/apis/{group}/v1/namespaces/{}/boxes?dryRun=All", policies.namespace);
    let object = |policy: &str| {
        let metadata = json!({"name": "a", "labels": {"policy": policy}});
        json!({"apiVersion": format!("{group}/v1"), "kind": "Box", "metadata": metadata})
    };
    api.post(&path, object("Ignore")).await.is(201);
    let reply = api.post(&path, object("Fail")).await.is(403);
    let message = reply.at("/message");
    let head = format!(
        "policy \"fail-{}\" denied request: failed to configure policy: conversion webhook for ",
        api.id
    );
    assert!(message.as_str().is_some_and(|message| message.starts_with(&head)), "{message}");
}

#[tokio::test]
async fn an_apply_configuration_has_only_values_of_json() {
    let api = Api::start();
    let policies = Policies::new(&api, "mutating").await;
    let cases = [
        "Object{data: {'k': null}}",
        "Object{metadata: Object.metadata{labels: null}}",
        "Object{metadata: Object.metadata{creationTimestamp: timestamp('2001-01-01T00:00:00Z')}}",
        "Object{data: {'k': duration('90s')}}",
        "Object{binaryData: {'k': b'ab'}}",
    ];
    for (index, expression) in cases.iter().enumerate() {
        let mutation =
            json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
        let selector = json!({"matchLabels": {"case": index.to_string()}, "matchExpressions": []});
        let spec = json!({"mutations": [mutation], "matchConstraints": {"objectSelector": selector}});
        policies.create(&format!("case-{index}"), spec, json!({})).await;
    }
    policies.wait().await;
    let mut seen = Vec::new();
    for index in 0..cases.len() {
        let body = json!({"metadata": {"name": "a", "labels": {"case": index.to_string()}}});
        let reply = api.post(&format!("{}?dryRun=All", policies.config_maps()), body).await;
        let message = reply.at("/message").as_str().unwrap_or_default().to_owned();
        let why = message.split("denied request: ").last().unwrap_or_default().to_owned();
        seen.push(format!("{} {why}", reply.code));
    }
    expect![[r#"
        403 error applying patch: failed to convert patch object to typed object: .data.k: expected string, got &value.valueUnstructured{Value:0}
        403 error applying patch: failed to convert patch object to typed object: .metadata.labels: expected map, got &{NULL_VALUE}
        403 error applying patch: failed to convert patch object to typed object: .metadata.creationTimestamp: expected any scalar, got &{2001-01-01 00:00:00 +0000 UTC}
        403 error applying patch: failed to convert patch object to typed object: .data.k: expected string, got &value.valueUnstructured{Value:90000000000}
        403 error applying patch: failed to convert patch object to typed object: .binaryData.k: expected string, got &value.valueUnstructured{Value:[]uint8{0x61, 0x62}}
    "#]].assert_eq(&lines(&seen));
}
