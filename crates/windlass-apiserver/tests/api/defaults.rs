//! Defaults that depend on other fields.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Api, lines};

/// Creates an object without storing it, and returns the value at a pointer in the reply.
async fn defaulted(api: &Api, path: &str, object: Value, pointer: &str) -> Value {
    api.post(&format!("{path}?dryRun=All"), object).await.is(201).at(pointer)
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "b", "ports": [{"containerPort": 8}]}], "hostNetwork": true}
    })
}

#[tokio::test]
async fn pods_have_defaults_that_templates_do_not_have() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pod = json!({"metadata": {"name": "a"}, "spec": template()["spec"]});
    let port = "/containers/0/ports/0/hostPort";
    let spec = defaulted(&api, &format!("/api/v1/namespaces/{ns}/pods"), pod, "/spec").await;
    assert_eq!(spec.pointer(port), Some(&json!(8)));
    assert_eq!(spec["enableServiceLinks"], true);
    let deployment = json!({
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template()}
    });
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    let spec = defaulted(&api, &path, deployment, "/spec/template/spec").await;
    assert_eq!(spec.pointer(port), None);
    assert_eq!(spec.get("enableServiceLinks"), None);
}

#[tokio::test]
async fn the_first_address_of_a_pod_is_its_address() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, crate::fixtures::pod("a")).await.is(201);
    let mut seen = Vec::new();
    for status in [
        json!({"podIP": "10.1.0.1"}),
        json!({"podIP": "10.1.0.2", "podIPs": [{"ip": "10.1.0.1"}]}),
        json!({"podIP": null, "podIPs": [{"ip": "10.1.0.3"}]}),
    ] {
        let patch = json!({"status": status});
        let written =
            api.patch(&format!("{path}/a/status"), crate::harness::MERGE_PATCH, patch).await.is(200);
        seen.push(format!("{} {}", written.at("/status/podIP"), written.at("/status/podIPs")));
    }
    expect![[r#"
        "10.1.0.1" [{"ip":"10.1.0.1"}]
        "10.1.0.2" [{"ip":"10.1.0.2"}]
        "10.1.0.3" [{"ip":"10.1.0.3"}]
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn strategies_and_policies_have_defaults_by_their_type() {
    let api = Api::start();
    let ns = api.namespace().await;
    let sets = format!("/apis/apps/v1/namespaces/{ns}/statefulsets");
    let set = |strategy: Value| {
        json!({
            "metadata": {"name": "a"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template(), "updateStrategy": strategy}
        })
    };
    let mut seen = Vec::new();
    for strategy in [
        json!({}),
        json!({"type": "RollingUpdate"}),
        json!({"rollingUpdate": {}}),
        json!({"type": "OnDelete"}),
    ] {
        seen.push(format!("{}", defaulted(&api, &sets, set(strategy), "/spec/updateStrategy").await));
    }
    let autoscalers = format!("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers");
    for behavior in [
        json!({"scaleDown": {}}),
        json!({"scaleUp": {"stabilizationWindowSeconds": 5, "selectPolicy": "Min"}}),
    ] {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
        let autoscaler = json!({
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": target, "behavior": behavior}
        });
        seen.push(format!("{}", defaulted(&api, &autoscalers, autoscaler, "/spec/behavior").await));
    }
    let template = json!({"spec": {"containers": [{"name": "a", "image": "b"}], "restartPolicy": "Never"}});
    let rules = json!([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]);
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": template, "podFailurePolicy": {"rules": rules}}});
    let jobs = format!("/apis/batch/v1/namespaces/{ns}/jobs");
    seen.push(format!("{}", defaulted(&api, &jobs, job, "/spec/podFailurePolicy").await));
    expect![[r#"
        {"rollingUpdate":{"maxUnavailable":1,"partition":0},"type":"RollingUpdate"}
        {"type":"RollingUpdate"}
        {"rollingUpdate":{"maxUnavailable":1,"partition":0},"type":"RollingUpdate"}
        {"type":"OnDelete"}
        {"scaleDown":{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"},"scaleUp":{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max","stabilizationWindowSeconds":0}}
        {"scaleDown":{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"},"scaleUp":{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Min","stabilizationWindowSeconds":5}}
        {"rules":[{"action":"Ignore","onPodConditions":[{"status":"True","type":"DisruptionTarget"}]}]}
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_limit_range_has_one_item_of_a_type() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/limitranges");
    let limits = json!([{"type": "Container", "max": {"cpu": "1"}}, {"type": "Container"}]);
    api.post(&path, json!({"metadata": {"name": "a"}, "spec": {"limits": limits}})).await.shows(expect![[
        r#"
            422 Invalid: LimitRange "a" is invalid: spec.limits[1].type: Duplicate value: "Container"
            kind="LimitRange" name="a"
            - FieldValueDuplicate spec.limits[1].type: Duplicate value: "Container""#
    ]]);
}

#[tokio::test]
async fn bytes_that_are_null_are_empty() {
    let api = Api::start();
    let ns = api.namespace().await;
    let secret = json!({"metadata": {"name": "a"}, "data": {"none": null}, "stringData": {"text": "b"}});
    let data = defaulted(&api, &format!("/api/v1/namespaces/{ns}/secrets"), secret, "/data").await;
    assert_eq!(data, json!({"none": "", "text": "Yg=="}));
    let map = json!({"metadata": {"name": "a"}, "binaryData": {"none": null}});
    let data = defaulted(&api, &format!("/api/v1/namespaces/{ns}/configmaps"), map, "/binaryData").await;
    assert_eq!(data, json!({"none": ""}));
}

#[tokio::test]
async fn a_claim_without_a_class_gets_the_newest_default_class() {
    let api = Api::start();
    if api.is_shared() {
        // A default class is one for all tests.
        return;
    }
    let claims = format!("/api/v1/namespaces/{}/persistentvolumeclaims", api.namespace().await);
    let claim = |spec: Value, annotations: Value| {
        let mut claim = json!({
            "metadata": {"name": "a", "annotations": annotations},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        });
        claim["spec"].as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
        claim
    };
    let class = "/spec/storageClassName";
    let none = defaulted(&api, &claims, claim(json!({}), json!({})), class).await;
    assert_eq!(none, Value::Null, "there is no class");
    for (name, annotations) in [
        ("other", json!({})),
        ("c", json!({"storageclass.kubernetes.io/is-default-class": "true"})),
        ("b", json!({"storageclass.beta.kubernetes.io/is-default-class": "true"})),
        ("a", json!({"storageclass.kubernetes.io/is-default-class": "false"})),
    ] {
        let class =
            json!({"metadata": {"name": name, "annotations": annotations}, "provisioner": "example.com/p"});
        api.post("/apis/storage.k8s.io/v1/storageclasses", class).await.is(201);
    }
    let settle = async |spec, annotations| defaulted(&api, &claims, claim(spec, annotations), class).await;
    let given = settle(json!({}), json!({})).await;
    assert!(given == "b" || given == "c", "one of the default classes: {given}");
    assert_eq!(settle(json!({"storageClassName": ""}), json!({})).await, "");
    assert_eq!(settle(json!({"storageClassName": "other"}), json!({})).await, "other");
    let annotated = settle(json!({}), json!({"volume.beta.kubernetes.io/storage-class": ""})).await;
    assert_eq!(annotated, Value::Null);
    let stored = api.post(&claims, claim(json!({}), json!({}))).await.is(201);
    let fields = stored.at("/metadata/managedFields/0").to_string();
    assert!(!fields.contains("storageClassName"), "the class has no manager: {fields}");
}

#[tokio::test]
async fn an_ingress_without_a_class_gets_the_default_class() {
    let api = Api::start();
    if api.is_shared() {
        // A default class is one for all tests.
        return;
    }
    let ingresses = format!("/apis/networking.k8s.io/v1/namespaces/{}/ingresses", api.namespace().await);
    let ingress = |annotations: Value| {
        json!({
            "metadata": {"name": "a", "annotations": annotations},
            "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}
        })
    };
    let class = "/spec/ingressClassName";
    assert_eq!(defaulted(&api, &ingresses, ingress(json!({})), class).await, Value::Null);
    for (name, is_default) in [("a", "false"), ("b", "true")] {
        let annotations = json!({"ingressclass.kubernetes.io/is-default-class": is_default});
        let class =
            json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"controller": "a.b/c"}});
        api.post("/apis/networking.k8s.io/v1/ingressclasses", class).await.is(201);
    }
    assert_eq!(defaulted(&api, &ingresses, ingress(json!({})), class).await, "b");
    let annotated = ingress(json!({"kubernetes.io/ingress.class": "other"}));
    assert_eq!(defaulted(&api, &ingresses, annotated, class).await, Value::Null);
    let stored = api.post(&ingresses, ingress(json!({}))).await.is(201);
    let mut cleared = stored.json();
    cleared["spec"].as_object_mut().unwrap().remove("ingressClassName");
    let put = api.put(&format!("{ingresses}/a"), cleared).await.is(200);
    assert_eq!(put.at(class), Value::Null, "only new ingresses get it");
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
async fn a_time_is_stored_in_utc_and_without_a_fraction_of_a_second() {
    let api = Api::start();
    let ns = api.namespace().await;
    let status = format!("/api/v1/namespaces/{ns}/status?dryRun=All");
    let time = async |time: &str| {
        let condition = json!({"type": "Checked", "status": "True", "lastTransitionTime": time});
        let patch = json!({"status": {"conditions": [condition]}});
        let changed = api.patch(&status, crate::harness::MERGE_PATCH, patch).await.is(200);
        changed.at("/status/conditions/0/lastTransitionTime")
    };
    assert_eq!(time("2020-01-01T01:00:00+02:00").await, "2019-12-31T23:00:00Z");
    assert_eq!(time("2020-01-01T00:00:00.123Z").await, "2020-01-01T00:00:00Z");
    assert_eq!(time("0001-01-01T00:00:00Z").await, Value::Null);
    let lease = json!({"metadata": {"name": "a"}, "spec": {"renewTime": "2020-01-01T01:00:00.123456+02:00"}});
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases");
    assert_eq!(defaulted(&api, &leases, lease, "/spec/renewTime").await, "2019-12-31T23:00:00.123456Z");
}

#[tokio::test]
async fn an_image_that_is_no_reference_is_pulled_if_it_is_absent() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let mut policies = Vec::new();
    for image in ["a", "/a", "b//a", "b/a", "a._b", "a__b", "a___b", "a--b", "b.c:80/a", "b.c:/a", "b.c:x/a"]
    {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": image}]}});
        let policy = defaulted(&api, &pods, pod, "/spec/containers/0/imagePullPolicy").await;
        policies.push(format!("{image}: {policy}"));
    }
    expect![[r#"
        a: "Always"
        /a: "IfNotPresent"
        b//a: "IfNotPresent"
        b/a: "Always"
        a._b: "IfNotPresent"
        a__b: "Always"
        a___b: "IfNotPresent"
        a--b: "Always"
        b.c:80/a: "Always"
        b.c:/a: "IfNotPresent"
        b.c:x/a: "IfNotPresent"
    "#]]
    .assert_eq(&lines(&policies));
}
