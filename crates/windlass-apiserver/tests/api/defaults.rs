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
        {"rollingUpdate":{"partition":0},"type":"RollingUpdate"}
        {"type":"RollingUpdate"}
        {"rollingUpdate":{"partition":0},"type":"RollingUpdate"}
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
