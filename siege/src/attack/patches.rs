//! Hostile patches.

use http::Method;
use serde_json::{Value, json};

use super::{ANYTHINGS, Attack, MAPS, Sent, conversation, copies, keys, one};
use crate::Result;
use crate::client::{Call, Client};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/siege/deployments/web";
const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(super) fn attacks() -> Vec<Attack> {
    let on = |name: &str| format!("{MAPS}/{name}");
    let list = format!("{ANYTHINGS}/list");
    let operations = |count: usize, one: fn(usize) -> Value| (0..count).map(one).collect::<Value>();
    vec![
        one("apply of 60,000 fields", apply("applied", "siege", "", 60_000)),
        conversation("apply with 60,000 conflicts", |client| Box::pin(conflicts(client, false))),
        conversation("forced apply of 60,000 fields by 10 managers", |client| {
            Box::pin(conflicts(client, true))
        }),
        one(
            "apply of 20,000 variables",
            patch(APPLY, &format!("{DEPLOYMENT}?fieldManager=siege&force=true"), &variables(20_000)),
        ),
        one(
            "apply of 20,000 equal variables",
            patch(APPLY, &format!("{DEPLOYMENT}?fieldManager=siege&force=true"), &equal_variables(20_000)),
        ),
        one(
            "strategic merge of 8,000 variables",
            patch(STRATEGIC, &format!("{DEPLOYMENT}?dryRun=All"), &variables(8_000)),
        ),
        one(
            "strategic merge with an order of 60,000",
            patch(STRATEGIC, &format!("{DEPLOYMENT}?dryRun=All"), &ordered(60_000)),
        ),
        one(
            "strategic merge with 50,000 deletions",
            patch(
                STRATEGIC,
                &on("one"),
                &json!({
                    "metadata": {"$deleteFromPrimitiveList/finalizers": names(50_000)}
                }),
            ),
        ),
        one(
            "strategic merge with 100,000 finalizers in order",
            patch(
                STRATEGIC,
                &on("one"),
                &json!({
                    "metadata": {"$setElementOrder/finalizers": names(100_000), "finalizers": names(50_000)}
                }),
            ),
        ),
        one(
            "merge patch with 250,000 nulls",
            patch(MERGE, &on("many"), &json!({"data": keys(250_000, &Value::Null)})),
        ),
        one(
            "JSON patch with 9,999 tests of the root",
            patch(
                JSON_PATCH,
                &on("many"),
                &operations(9_999, |_| json!({"op": "test", "path": "", "value": {}})),
            ),
        ),
        one(
            "JSON patch with 9,999 copies",
            patch(
                JSON_PATCH,
                &on("many"),
                &operations(
                    9_999,
                    |number| json!({"op": "copy", "from": "/data", "path": format!("/data/c{number}")}),
                ),
            ),
        ),
        one(
            "JSON patch with 9,999 insertions into a list of 300,000",
            patch(
                JSON_PATCH,
                &list,
                &operations(9_999, |_| json!({"op": "add", "path": "/value/0", "value": 1})),
            ),
        ),
        one(
            "JSON patch with 9,999 removals from a list of 300,000",
            patch(JSON_PATCH, &list, &operations(9_999, |_| json!({"op": "remove", "path": "/value/0"}))),
        ),
        one(
            "JSON patch with 5,000 moves of a list of 300,000",
            patch(
                JSON_PATCH,
                &list,
                &operations(
                    5_000,
                    |number| json!({"op": "move", "from": if number % 2 == 0 { "/value" } else { "/other" }, "path": if number % 2 == 0 { "/other" } else { "/value" }}),
                ),
            ),
        ),
        one(
            "JSON patch with 9,999 copies and removals of a list",
            patch(
                JSON_PATCH,
                &list,
                &operations(9_999, |number| match number % 2 {
                    0 => json!({"op": "copy", "from": "/value", "path": "/other"}),
                    _ => json!({"op": "remove", "path": "/other"}),
                }),
            ),
        ),
        one(
            "JSON patch with a path of 1,400,000 parts",
            patch(
                JSON_PATCH,
                &on("many"),
                &json!([
                    {"op": "add", "path": "/a".repeat(1_400_000), "value": 1}
                ]),
            ),
        ),
        one(
            "JSON patch with 1,000,000 empty operations",
            Call::new(Method::PATCH, on("many")).with(JSON_PATCH, format!("[{}]", copies("{}", 970_000))),
        ),
    ]
}

fn patch(content_type: &'static str, path: &str, patch: &Value) -> Call {
    Call::new(Method::PATCH, path).with(content_type, patch.to_string())
}

fn apply(name: &str, manager: &str, value: &str, fields: usize) -> Call {
    let data = keys(fields, &json!(value));
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    patch(APPLY, &format!("{MAPS}/{name}?fieldManager={manager}"), &object)
}

/// Applies other values of the same fields by several managers.
async fn conflicts(client: Client, force: bool) -> Result<Sent> {
    let connection = client.connect().await?;
    let name = if force { "forced" } else { "conflicts" };
    let (mut bytes, mut outcome) = (0, String::new());
    let managers = if force { 10 } else { 2 };
    for number in 0..managers {
        let mut call = apply(name, &format!("m{number}"), &number.to_string(), 60_000);
        if force {
            call.path.push_str("&force=true");
        }
        bytes += call.body.len();
        outcome = connection.send(call).await?.code.to_string();
    }
    Ok(Sent { outcome, bytes, requests: managers })
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("a.b/{number}")).collect()
}

fn with_variables(variables: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "a", "env": variables}]}}}
    })
}

fn variables(count: usize) -> Value {
    with_variables(&(0..count).map(|number| json!({"name": format!("v{number}")})).collect())
}

fn equal_variables(count: usize) -> Value {
    with_variables(&(0..count).map(|_| json!({"name": "v"})).collect())
}

fn ordered(count: usize) -> Value {
    let order: Value = (0..count).map(|number| json!({"name": format!("v{number}")})).collect();
    let containers = json!([{"name": "a", "$setElementOrder/env": order, "env": [{"name": "v1"}]}]);
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}
