//! The metrics of the server itself.

use expect_test::expect;
use http::Method;
use serde_json::json;

use crate::fixtures::config_map;
use crate::harness::{Answer, Api, Webhook, deadline, lines, rule};

/// Returns the value of the sample with this name and these labels, in any order; 0 without such a sample.
async fn value(api: &Api, name: &str, labels: &[(&str, &str)]) -> f64 {
    let page = String::from_utf8(api.get("/metrics").await.is(200).body.to_vec()).unwrap();
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

/// A name in a path is any text: a label for each name would take memory for ever.
#[tokio::test]
async fn names_that_the_server_does_not_know_are_no_labels() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.get(&format!("/api/v1/namespaces/{ns}/podtemplates/a/invented-subresource")).await.is(404);
    api.get(&format!("/api/v1/namespaces/{ns}/inventedresources/a")).await.is(404);
    let method = Method::from_bytes(b"INVENTED").unwrap();
    api.request(method, &format!("/api/v1/namespaces/{ns}/podtemplates/a")).send().await.is(405);
    let page = String::from_utf8(api.get("/metrics").await.is(200).body.to_vec()).unwrap().to_lowercase();
    let invented: Vec<&str> = page.lines().filter(|line| line.contains("invented")).collect();
    assert!(invented.is_empty(), "{invented:?}");
    let other = ("verb", "other");
    let other = [other, ("resource", "podtemplates"), ("code", "405")];
    assert!(value(&api, "apiserver_request_total", &other).await >= 1.0);
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
        assert!(start.elapsed() < deadline(), "the watch is still counted");
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
        let version = [("major", "1"), ("minor", "37")];
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
    let reset = api.delete("/metrics").await.is(200);
    assert_eq!(reset.body, "metrics reset\n");
}

#[tokio::test]
async fn calls_of_webhooks_are_counted() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|path, _| match path {
        "/denies" => Answer::deny(json!({"code": 418, "message": "no"})),
        "/fails" => Answer::Raw { code: 500, content_type: "text/plain", body: "x".to_owned() },
        _ => Answer::allow(),
    })
    .await;
    let webhook = |name: &str, policy: &str| {
        json!({
            "name": format!("{name}.{}.test", api.id), "clientConfig": format!("/{name}"), "failurePolicy": policy,
            "rules": [rule("CREATE", "", "v1", "configmaps")], "objectSelector": {"matchLabels": {"only": name}}
        })
    };
    hook.configure(&api, "mutating", "a", json!([webhook("fails", "Ignore")])).await;
    hook.configure(
        &api,
        "validating",
        "a",
        json!([webhook("fails", "Fail"), webhook("denies", "Fail"), webhook("allows", "Fail")]),
    )
    .await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    for (name, code) in [("fails", 500), ("denies", 418), ("allows", 201)] {
        api.post(&path, json!({"metadata": {"name": name, "labels": {"only": name}}})).await.is(code);
    }
    let page = String::from_utf8(api.get("/metrics").await.is(200).body.to_vec()).unwrap();
    let wanted = format!(".{}.test\"", api.id);
    let is_of_test =
        |line: &&str| line.contains(&wanted) && !line.contains("_bucket") && !line.contains("_sum");
    let seen: Vec<String> = page
        .lines()
        .filter(is_of_test)
        .map(|line| line.replace(&format!(".{}", api.id), "").replace("apiserver_admission_webhook_", ""))
        .collect();
    expect![[r#"
        admission_duration_seconds_count{name="allows.test",operation="CREATE",rejected="false",type="validating"} 1
        admission_duration_seconds_count{name="denies.test",operation="CREATE",rejected="true",type="validating"} 1
        admission_duration_seconds_count{name="fails.test",operation="CREATE",rejected="false",type="admit"} 1
        admission_duration_seconds_count{name="fails.test",operation="CREATE",rejected="true",type="validating"} 1
        fail_open_count{name="fails.test",type="admit"} 1
        rejection_count{error_type="calling_webhook_error",name="fails.test",operation="CREATE",rejection_code="500",type="validating"} 1
        rejection_count{error_type="no_error",name="denies.test",operation="CREATE",rejection_code="418",type="validating"} 1
        request_total{code="200",name="allows.test",operation="CREATE",rejected="false",type="validating"} 1
        request_total{code="418",name="denies.test",operation="CREATE",rejected="true",type="validating"} 1
        request_total{code="500",name="fails.test",operation="CREATE",rejected="false",type="admit"} 1
        request_total{code="500",name="fails.test",operation="CREATE",rejected="true",type="validating"} 1
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn authentication_is_counted() {
    let api = Api::start_over_tls();
    let count = async |result| value(&api, "authentication_attempts", &[("result", result)]).await;
    let before = (count("success").await, count("error").await);
    api.with_token("no-such-token").get("/api").await.is(401);
    // The real server counts a request at the end, and the duration later.
    let measured =
        async || value(&api, "authentication_duration_seconds_count", &[("result", "error")]).await;
    let start = std::time::Instant::now();
    while count("success").await <= before.0
        || count("error").await < before.1 + 1.0
        || measured().await < 1.0
    {
        assert!(start.elapsed() < deadline());
    }
    let users = value(&api, "authenticated_user_requests", &[("username", "other")]).await
        + value(&api, "authenticated_user_requests", &[("username", "admin")]).await;
    assert!(users >= 1.0);
}

#[tokio::test]
async fn the_results_of_health_checks_are_counted() {
    let api = Api::start();
    for path in ["/livez", "/livez?exclude=etcd", "/livez/ping"] {
        api.get(path).await.is(200);
    }
    let reply = api.get("/metrics/slis").await.is(200);
    assert!(reply.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let page = String::from_utf8(reply.body.to_vec()).unwrap();
    for line in [
        "# TYPE kubernetes_healthcheck gauge",
        "kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 1",
        "# TYPE kubernetes_healthchecks_total counter",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} {page}");
    }
    let count = |check: &str| {
        let start =
            format!("kubernetes_healthchecks_total{{name=\"{check}\",status=\"success\",type=\"livez\"}} ");
        let count = page.lines().find_map(|line| line.strip_prefix(start.as_str()));
        count.unwrap().parse::<u32>().unwrap()
    };
    // Neither a single check nor an excluded check is counted.
    if !api.is_shared() {
        assert_eq!((count("ping"), count("etcd")), (2, 1));
    }
    api.impersonating("someone", &["system:monitoring"]).get("/metrics/slis").await.is(200);
    api.impersonating("someone", &[]).get("/metrics/slis").await.is(403);
}
