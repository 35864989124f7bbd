//! The metrics of the server itself.

use serde_json::json;

use crate::fixtures::config_map;
use crate::harness::{Api, DEADLINE};

/// The value of the sample with this name and these labels, in any order; 0 without one.
async fn value(api: &Api, name: &str, labels: &[(&str, &str)]) -> f64 {
    let page = api.get("/metrics").await.is(200).to_string();
    let pairs: Vec<String> = labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
    let sample = page.lines().find(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && pairs.iter().all(|pair| rest.contains(pair)))
    });
    sample.map_or(0.0, |sample| sample.rsplit_once(' ').unwrap().1.parse().unwrap())
}

fn of(resource: &'static str, verb: &'static str, scope: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![
        ("component", "apiserver"),
        ("dry_run", ""),
        ("group", ""),
        ("version", "v1"),
        ("resource", resource),
        ("subresource", ""),
        ("verb", verb),
        ("scope", scope),
    ]
}

fn with_code<'a>(labels: &[(&'a str, &'a str)], code: &'a str) -> Vec<(&'a str, &'a str)> {
    [labels, &[("code", code)]].concat()
}

#[tokio::test]
async fn requests_are_counted() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/podtemplates");
    let (get, list) = (of("podtemplates", "GET", "resource"), of("podtemplates", "LIST", "namespace"));
    let create = of("podtemplates", "POST", "resource");
    let total = "apiserver_request_total";
    let before = (
        value(&api, total, &with_code(&get, "404")).await,
        value(&api, total, &with_code(&list, "200")).await,
        value(&api, total, &with_code(&create, "422")).await,
        value(&api, "apiserver_request_duration_seconds_count", &list).await,
    );
    api.get(&format!("{maps}/none")).await.is(404);
    for _ in 0..3 {
        api.get(&maps).await.is(200);
    }
    api.post(&maps, json!({"metadata": {"name": "A_"}, "template": {}})).await.is(422);
    // No other test asks for these.
    assert!((value(&api, total, &with_code(&get, "404")).await - before.0 - 1.0).abs() < 0.1);
    assert!(value(&api, total, &with_code(&list, "200")).await - before.1 >= 3.0);
    assert!((value(&api, total, &with_code(&create, "422")).await - before.2 - 1.0).abs() < 0.1);
    assert!(value(&api, "apiserver_request_duration_seconds_count", &list).await - before.3 >= 3.0);
    let health = [("subresource", "/healthz"), ("verb", "GET"), ("code", "200")];
    let before = value(&api, total, &health).await;
    api.get("/healthz").await.is(200);
    assert!(value(&api, total, &health).await > before);
}

#[tokio::test]
async fn watches_are_counted_while_they_last() {
    let api = Api::start();
    let ns = api.namespace().await;
    let labels = of("podtemplates", "WATCH", "namespace");
    let labels: Vec<_> = labels.into_iter().filter(|(label, _)| *label != "dry_run").collect();
    let name = "apiserver_longrunning_requests";
    let before = value(&api, name, &labels).await;
    let watch = api.watch(&format!("/api/v1/namespaces/{ns}/podtemplates")).await;
    assert!(value(&api, name, &labels).await > before);
    drop(watch);
    let start = std::time::Instant::now();
    while value(&api, name, &labels).await > before {
        assert!(start.elapsed() < DEADLINE, "the watch is still counted");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn objects_and_the_process_are_measured() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), config_map("a")).await.is(201);
    let roles =
        value(&api, "apiserver_storage_objects", &[("resource", "clusterroles.rbac.authorization.k8s.io")])
            .await;
    // The real server counts every minute.
    assert!(api.is_shared() || roles >= 69.0, "{roles}");
    if !api.is_shared() {
        let group = [("group", ""), ("resource", "namespaces")];
        assert!((value(&api, "apiserver_resource_objects", &group).await - 5.0).abs() < 0.1);
        let version = [("major", "1"), ("minor", "36")];
        assert!((value(&api, "kubernetes_build_info", &version).await - 1.0).abs() < 0.1);
    }
    assert!(value(&api, "process_resident_memory_bytes", &[]).await > 1e6);
}

#[tokio::test]
async fn metrics_are_not_for_everybody() {
    let api = Api::start();
    api.anonymous().get("/metrics").await.is(403);
    let page = api.get("/metrics").await.is(200);
    assert!(page.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    assert_eq!(api.delete("/metrics").await.code, if api.is_shared() { 200 } else { 405 });
}
