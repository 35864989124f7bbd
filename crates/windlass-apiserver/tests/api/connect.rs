//! `exec`, `attach`, `portforward` and `proxy`: the needed rights, and the reviews of webhooks.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Api, Webhook, lines, plain, rule};

/// Creates two pods in a namespace: a pod without a node, and a pod with two containers.
async fn pods(api: &Api, ns: &str) -> String {
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    for (name, containers) in [("one", vec!["c"]), ("two", vec!["c", "d"])] {
        let containers: Vec<Value> =
            containers.into_iter().map(|name| json!({"name": name, "image": "x"})).collect();
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}});
        api.post(&pods, pod).await.is(201);
    }
    pods
}

#[tokio::test]
async fn webhooks_see_connections() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::allow()).await;
    for kind in ["mutating", "validating"] {
        let mut skipped = rule("CONNECT", "", "v1", "pods/*");
        skipped["operations"] = json!(["CREATE", "UPDATE", "DELETE"]);
        let webhooks = json!([
            {"name": "a.webhook.test", "clientConfig": format!("/{kind}"), "rules": [rule("CONNECT", "", "v1", "*/*")]},
            {"name": "b.webhook.test", "clientConfig": "/other-operations", "rules": [skipped]},
            {
                "name": "c.webhook.test",
                "clientConfig": "/selected",
                "rules": [rule("CONNECT", "", "v1", "*/*")],
                "objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
            },
        ]);
        hook.configure(&api, kind, "connect", webhooks).await;
    }
    let pods = pods(&api, &ns).await;
    let services = format!("/api/v1/namespaces/{ns}/services");
    api.post(&services, json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})).await.is(201);
    let mut seen = Vec::new();
    for path in [
        format!("{pods}/one/exec?command=ls&command=-l&stdout=1&stderr=false&tty&stdin=0&other=1"),
        format!("{pods}/two/exec?container=d"),
        format!("{pods}/one/attach?stdin=true&stdout=FALSE"),
        format!("{pods}/one/portforward?ports=80,81&ports=82"),
        format!("{pods}/one/portforward"),
        format!("{pods}/http:one:80/proxy/a//b/?path=/c&d=e"),
        format!("{pods}/none/proxy"),
        format!("{services}/a:80/proxy/"),
        format!("{services}/a/proxy/x%2Fy"),
        format!("{pods}/one/log"),
    ] {
        let before = (hook.seen("/mutating").len(), hook.seen("/validating"));
        let code = api.get(&path).await.code;
        let after = hook.seen("/validating");
        assert_eq!(hook.seen("/mutating").len() - before.0, after.len() - before.1.len());
        let line = after[before.1.len()..].iter().map(|review| {
            let request = &review["request"];
            format!(
                "{} {}/{} {} {} in {}, dry run {}, old {}, options {}: {}",
                request["operation"],
                request["resource"]["resource"],
                request["subResource"],
                request["kind"]["kind"],
                request["name"],
                request["namespace"],
                request["dryRun"],
                request["oldObject"],
                request["options"],
                request["object"]
            )
        });
        let seen_here: Vec<String> = line.collect();
        seen.push(format!("{code} {}", seen_here.join("; ")));
    }
    assert!(hook.seen("/other-operations").iter().all(|review| review["request"]["operation"] == "CREATE"));
    assert_eq!(hook.seen("/selected").len(), 0);
    expect![[r#"
        400 "CONNECT" "pods"/"exec" "PodExecOptions" "one" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","command":["ls","-l"],"kind":"PodExecOptions","stdout":true,"tty":true}
        400 "CONNECT" "pods"/"exec" "PodExecOptions" "two" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","command":null,"container":"d","kind":"PodExecOptions"}
        400 "CONNECT" "pods"/"attach" "PodAttachOptions" "one" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","kind":"PodAttachOptions","stdin":true}
        400 "CONNECT" "pods"/"portforward" "PodPortForwardOptions" "one" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","kind":"PodPortForwardOptions","ports":[80,81,82]}
        400 "CONNECT" "pods"/"portforward" "PodPortForwardOptions" "one" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","kind":"PodPortForwardOptions"}
        400 "CONNECT" "pods"/"proxy" "PodProxyOptions" "http:one:80" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","kind":"PodProxyOptions","path":"/a//b/"}
        404 "CONNECT" "pods"/"proxy" "PodProxyOptions" "none" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","kind":"PodProxyOptions"}
        503 "CONNECT" "services"/"proxy" "ServiceProxyOptions" "a:80" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","kind":"ServiceProxyOptions","path":"/"}
        503 "CONNECT" "services"/"proxy" "ServiceProxyOptions" "a" in "ns-ID", dry run false, old null, options null: {"apiVersion":"v1","kind":"ServiceProxyOptions","path":"/x/y"}
        204 
    "#]].assert_eq(&plain(&lines(&seen), &api.id));
}

#[tokio::test]
async fn webhooks_deny_and_change_connections() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pods = pods(&api, &ns).await;
    let hook = Webhook::start(|path, review| match (path, review["request"]["subResource"].as_str()) {
        ("/change", Some("exec")) => {
            Answer::patch(json!([{"op": "add", "path": "/container", "value": "e"}]))
        }
        ("/deny", Some("attach")) => Answer::deny(json!({"code": 418, "message": "no attaching here"})),
        _ => Answer::allow(),
    })
    .await;
    for (kind, path) in [("mutating", "/change"), ("validating", "/deny")] {
        let webhooks = json!([{
            "name": "a.webhook.test", "clientConfig": path, "rules": [rule("CONNECT", "", "v1", "pods/*")]
        }]);
        hook.configure(&api, kind, "connect", webhooks).await;
    }
    let mut seen = Vec::new();
    for path in ["two/exec?container=d", "two/attach?container=d", "one/portforward"] {
        seen.push(format!("{path}: {}", api.get(&format!("{pods}/{path}")).await));
    }
    expect![[r#"
        two/exec?container=d: 400 BadRequest: container e is not valid for pod two
        two/attach?container=d: 418 -: admission webhook "a.webhook.test" denied the request: no attaching here
        one/portforward: 400 BadRequest: pod one does not have a host assigned
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn options_of_connections_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pods = pods(&api, &ns).await;
    let mut seen = Vec::new();
    for path in [
        "one/exec?dryRun=All",
        "one/exec?dryRun=",
        "one/portforward?ports=a",
        "one/portforward?ports=80,",
        "one/portforward?ports=70000",
        "one/portforward?ports=-1",
    ] {
        seen.push(format!("{path}: {}", api.get(&format!("{pods}/{path}")).await));
    }
    expect![[r#"
        one/exec?dryRun=All: 400 BadRequest: dryRun is not supported
        one/exec?dryRun=: 400 BadRequest: dryRun is not supported
        one/portforward?ports=a: 400 BadRequest: cannot convert to []int32: strconv.ParseUint: parsing "a": invalid syntax
        one/portforward?ports=80,: 400 BadRequest: cannot convert to []int32: strconv.ParseUint: parsing "": invalid syntax
        one/portforward?ports=70000: 400 BadRequest: cannot convert to []int32: strconv.ParseUint: parsing "70000": value out of range
        one/portforward?ports=-1: 400 BadRequest: cannot convert to []int32: strconv.ParseUint: parsing "-1": invalid syntax
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn to_connect_is_to_create() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pods = pods(&api, &ns).await;
    let name = format!("jane-{}", api.id);
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}");
    let rules = json!([
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/portforward", "pods/proxy"]},
        {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/attach"]},
    ]);
    api.post(&format!("{roles}/roles"), json!({"metadata": {"name": "r"}, "rules": rules})).await.is(201);
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    });
    api.post(&format!("{roles}/rolebindings"), binding).await.is(201);
    let jane = api.impersonating(&name, &[]);
    jane.eventually(&format!("{pods}/none/attach"), |reply| reply.code == 404).await;
    let mut seen = Vec::new();
    for subresource in ["exec", "attach", "portforward", "proxy"] {
        for method in [Method::GET, Method::POST] {
            let reply = jane.request(method.clone(), &format!("{pods}/one/{subresource}")).send().await;
            seen.push(format!("{method} {subresource}: {reply}"));
        }
    }
    expect![[r#"
        GET exec: 403 Forbidden: pods "one" is forbidden: 
        kind="pods" name="one"
        POST exec: 403 Forbidden: pods "one" is forbidden: User "jane-ID" cannot create resource "pods/exec" in API group "" in the namespace "ns-ID"
        kind="pods" name="one"
        GET attach: 400 BadRequest: pod one does not have a host assigned
        POST attach: 400 BadRequest: pod one does not have a host assigned
        GET portforward: 403 Forbidden: pods "one" is forbidden: 
        kind="pods" name="one"
        POST portforward: 403 Forbidden: pods "one" is forbidden: User "jane-ID" cannot create resource "pods/portforward" in API group "" in the namespace "ns-ID"
        kind="pods" name="one"
        GET proxy: 400 BadRequest: address not allowed
        POST proxy: 403 Forbidden: pods "one" is forbidden: User "jane-ID" cannot create resource "pods/proxy" in API group "" in the namespace "ns-ID"
        kind="pods" name="one"
    "#]].assert_eq(&plain(&lines(&seen), &api.id));
}
