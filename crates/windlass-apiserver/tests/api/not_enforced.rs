//! Kinds without an effect: the embedded server sends a warning. A real server has all controllers and
//! plugins.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Api, MERGE_PATCH, NOT_ENFORCED, Reply, lines};

/// The warnings that only the embedded server sends, without their common beginning.
fn not_enforced(reply: &Reply) -> Vec<String> {
    let warnings = reply.warnings();
    let texts = warnings.iter().filter_map(|warning| warning.strip_prefix(NOT_ENFORCED));
    texts.map(|text| text.trim_end_matches('"').to_owned()).collect()
}

#[tokio::test]
async fn objects_that_are_stored_without_effect_say_so() {
    let api = Api::start();
    if api.is_shared() {
        return;
    }
    let ns = api.namespace().await;
    let mut seen = Vec::new();
    let pod = json!({"spec": {"containers": [{"name": "a", "image": "b"}], "restartPolicy": "Never"}});
    let crd = |versions: Value, conversion: Value| {
        json!({"spec": {
            "group": "g.x", "scope": "Cluster", "names": {"plural": "as", "kind": "Aa"},
            "versions": versions, "conversion": conversion
        }})
    };
    let version = |rules: Value| {
        let schema = json!({"type": "object", "x-kubernetes-validations": rules});
        json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}])
    };
    let webhook = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://localhost/"}
    }});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let rule = json!([{"rule": "true"}]);
    for (path, object) in [
        (format!("/apis/batch/v1/namespaces/{ns}/jobs"), json!({"spec": {"template": pod}})),
        (format!("/api/v1/namespaces/{ns}/services"), json!({"spec": {"ports": [{"port": 80}]}})),
        (
            format!("/api/v1/namespaces/{ns}/services"),
            json!({"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
        ),
        (
            "/apis/apiregistration.k8s.io/v1/apiservices".to_owned(),
            json!({"spec": {
                "group": "g.x", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                "service": {"name": "a", "namespace": "b"}
            }}),
        ),
        (definitions.to_owned(), crd(version(json!([])), json!(null))),
        (definitions.to_owned(), crd(version(rule), webhook)),
        (format!("/api/v1/namespaces/{ns}/configmaps"), json!({})),
        (
            "/api/v1/namespaces".to_owned(),
            json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}),
        ),
    ] {
        let mut object = object;
        let plural = path.rsplit('/').next().unwrap().to_owned();
        object["metadata"]["name"] = json!(match plural.as_str() {
            "apiservices" => "v1.g.x",
            "customresourcedefinitions" => "as.g.x",
            _ => "a",
        });
        let created = api.post(&format!("{path}?dryRun=All"), object).await.is(201);
        seen.push(format!("{plural}: {:?}", not_enforced(&created)));
    }
    expect![[r#"
        jobs: []
        services: []
        services: []
        apiservices: []
        customresourcedefinitions: []
        customresourcedefinitions: []
        configmaps: []
        namespaces: ["pods are not held to the pod security standards of the labels"]
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn updates_say_so_too_and_writes_of_the_status_do_not() {
    let api = Api::start();
    if api.is_shared() {
        return;
    }
    let ns = api.namespace().await;
    let path = format!("/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses");
    let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"name": "a"}, "spec": {"defaultBackend": backend}});
    api.post(&path, ingress).await.is(201);
    let path = format!("{path}/a");
    let updated = api.patch(&path, MERGE_PATCH, json!({"metadata": {"labels": {"l": "v"}}})).await.is(200);
    assert_eq!(not_enforced(&updated).len(), 1);
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}});
    let written = api.patch(&format!("{path}/status"), MERGE_PATCH, status).await.is(200);
    assert_eq!(written.warnings(), Vec::<String>::new());
}
