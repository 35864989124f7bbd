//! Match conditions of webhooks.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Answer, Api, Webhook, lines, plain, rule};

fn conditions(expressions: &[&str]) -> Value {
    let condition = |(index, expression)| json!({"name": format!("c{index}"), "expression": expression});
    expressions.iter().enumerate().map(condition).collect()
}

#[tokio::test]
async fn a_webhook_is_called_if_its_conditions_hold() {
    let api = Api::start_over_tls();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::allow()).await;
    let cases = [
        ("name", vec!["object.metadata.name == 'a'"]),
        ("both", vec!["true", "request.operation == 'CREATE' && oldObject == null"]),
        ("no", vec!["true", "false"]),
        ("rights", vec!["authorizer.requestResource.check('create').allowed()", "namespaceObject == null"]),
        // A condition that says no outweighs a condition that fails.
        ("fails", vec!["object.data.absent == ''", "false"]),
    ];
    for kind in ["mutating", "validating"] {
        let webhooks: Vec<Value> = cases
            .iter()
            .map(|(name, expressions)| {
                json!({
                    "name": format!("{name}.webhook.test"), "clientConfig": format!("/{kind}-{name}"),
                    "rules": [rule("CREATE", "", "v1", "configmaps")], "matchConditions": conditions(expressions)
                })
            })
            .collect();
        hook.configure(&api, kind, kind, webhooks.into()).await;
    }
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    for name in ["a", "b"] {
        api.post(&path, json!({"metadata": {"name": name}, "data": {"k": "v"}})).await.is(201);
    }
    let mut called = hook.paths();
    called.sort();
    expect![[r#"
        /mutating-both
        /mutating-both
        /mutating-name
        /mutating-rights
        /mutating-rights
        /validating-both
        /validating-both
        /validating-name
        /validating-rights
        /validating-rights
    "#]]
    .assert_eq(&lines(&called));
}

#[tokio::test]
async fn a_condition_that_fails_follows_the_failure_policy() {
    let api = Api::start_over_tls();
    let ns = api.namespace().await;
    let hook = Webhook::start(|_, _| Answer::allow()).await;
    let webhook = |policy: &str| {
        json!({
            "name": format!("{}.webhook.test", policy.to_lowercase()), "clientConfig": format!("/{policy}"),
            "failurePolicy": policy, "rules": [rule("CREATE", "", "v1", "configmaps")],
            "objectSelector": {"matchLabels": {"policy": policy}},
            "matchConditions": conditions(&["object.data.absent == ''", "int(object.metadata.name) > 0"])
        })
    };
    hook.configure(&api, "validating", "a", json!([webhook("Ignore"), webhook("Fail")])).await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut seen = Vec::new();
    for policy in ["Ignore", "Fail"] {
        let body = json!({"metadata": {"name": "a", "labels": {"policy": policy}}, "data": {"k": "v"}});
        let reply = api.post(&format!("{path}?dryRun=All"), body).await;
        let message = reply.at("/message").as_str().unwrap_or_default().to_owned();
        seen.push(plain(&format!("{policy}: {} {message}", reply.code), &api.id));
    }
    assert_eq!(hook.paths(), Vec::<String>::new());
    expect![[r#"
        Ignore: 201 
        Fail: 403 configmaps "a" is forbidden: [expression 'object.data.absent == ''' resulted in error: no such key: absent, expression 'int(object.metadata.name) > 0' resulted in error: type conversion error from 'string' to 'int']
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn the_expressions_of_conditions_are_compiled_when_they_change() {
    let api = Api::start();
    let webhook = |expressions: &[&str]| {
        json!([{
            "name": "a.webhook.test", "clientConfig": {"url": "https://localhost/"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "namespaceSelector": {"matchLabels": {"no": "namespace"}},
            "matchConditions": conditions(expressions)
        }])
    };
    let mut seen = Vec::new();
    for expression in [
        "object.metadata.name",
        "'a'",
        "object.",
        "params == null",
        "variables.a",
        " request.name == 1 ",
        "authorizer.requestResource.frob()",
    ] {
        for kind in ["mutating", "validating"] {
            let path =
                format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations?dryRun=All");
            let body =
                json!({"metadata": {"name": format!("{}-odd", api.id)}, "webhooks": webhook(&[expression])});
            let reply = api.post(&path, body).await.is(422);
            let message = reply.text_at("/details/causes/0/message");
            if kind == "mutating" {
                seen.push(message);
            } else {
                assert_eq!(seen.last(), Some(&message));
            }
        }
    }
    expect![[r#"
        Invalid value: "object.metadata.name": must evaluate to bool but got dyn
        Invalid value: "'a'": must evaluate to bool but got string
        Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'
         | object.
         | .......^
        Invalid value: "params == null": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')
         | params == null
         | ^
        Invalid value: "variables.a": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')
         | variables.a
         | ^
        Invalid value: "request.name == 1": compilation failed: ERROR: <input>:1:14: found no matching overload for '_==_' applied to '(string, int)'
         | request.name == 1
         | .............^
        Invalid value: "authorizer.requestResource.frob()": compilation failed: ERROR: <input>:1:32: undeclared reference to 'frob' (in container '')
         | authorizer.requestResource.frob()
         | ...............................^
    "#]].assert_eq(&lines(&seen));
}
