//! Hostile requests: small requests with much work or much memory behind the requests.

mod definitions;
mod flood;
mod objects;
mod patches;
mod queries;
mod readers;
mod webhooks;

mod frames;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::Method;
use serde_json::{Map, Value, json};

use crate::client::{Call, Client, Connection};
use crate::{HttpsServer, Result};

/// The namespace of the attacks.
const NAMESPACE: &str = "siege";
const PODS: &str = "/api/v1/namespaces/siege/pods";
pub(crate) const MAPS: &str = "/api/v1/namespaces/siege/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ANYTHINGS: &str = "/apis/siege.test/v1/namespaces/siege/anythings";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A hostile request, or a hostile conversation.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) means: Means,
}

/// The means of an attack.
pub(crate) enum Means {
    /// Requests that are sent at the same time.
    Requests { call: Call, copies: usize },
    /// Anything else.
    Conversation(fn(Client) -> Task<Sent>),
}

/// The future of a conversation or a preparation.
type Task<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// The requests of a conversation.
pub(crate) struct Sent {
    /// The result: the last status code, for example.
    pub(crate) outcome: String,
    pub(crate) bytes: usize,
    /// The number of requests that the limits are multiplied with.
    pub(crate) requests: usize,
}

/// Attacks with a common preparation.
pub(crate) struct Group {
    /// Creates the objects that the attacks need. The returned servers run until the end of the attacks.
    pub(crate) prepare: fn(Client) -> Task<Vec<HttpsServer>>,
    pub(crate) attacks: Vec<Attack>,
}

/// Returns all attacks.
pub(crate) fn groups() -> Vec<Group> {
    let first = [objects::attacks(), patches::attacks(), queries::attacks(), flood::attacks()];
    vec![
        Group {
            prepare: |client| Box::pin(prepare_basics(client)),
            attacks: first.into_iter().flatten().collect(),
        },
        Group { prepare: |client| Box::pin(definitions::prepare(client)), attacks: definitions::attacks() },
        Group { prepare: |client| Box::pin(webhooks::prepare(client)), attacks: webhooks::attacks() },
        Group { prepare: |client| Box::pin(readers::prepare(client)), attacks: readers::attacks() },
        Group {
            prepare: |client| Box::pin(definitions::prepare_many(client)),
            attacks: definitions::attacks_on_many(),
        },
    ]
}

/// Returns the requests that need no other preparation than [`prepare`].
pub(crate) fn calls() -> Vec<Call> {
    let attacks = [objects::attacks(), patches::attacks(), queries::attacks()].into_iter().flatten();
    attacks
        .filter_map(|attack| match attack.means {
            Means::Requests { call, .. } => Some(call),
            Means::Conversation(_) => None,
        })
        .collect()
}

async fn prepare_basics(client: Client) -> Result<Vec<HttpsServer>> {
    prepare(&client.connect().await?).await?;
    Ok(Vec::new())
}

/// Creates the namespace, the definitions and the objects that most attacks need.
///
/// # Errors
/// The server refuses an object.
pub(crate) async fn prepare(admin: &Connection) -> Result {
    let map = |name: &str, data: Value| json!({"metadata": {"name": name}, "data": data});
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let many = (0..2_000).map(|number| (format!("key-{number}"), json!("value")));
    let kept: Vec<Call> = vec![
        Call::post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})),
        Call::post(CRDS, &definition("Anything", schema)),
        Call::post(CRDS, &definition("Pattern", slow_schema())),
        Call::post(MAPS, &map("one", json!({"a": "b"}))),
        Call::post(MAPS, &map("many", many.collect())),
        Call::post("/apis/apps/v1/namespaces/siege/deployments", &deployment()),
    ];
    for call in kept {
        create(admin, call).await?;
    }
    for kind in ["anythings", "patterns"] {
        wait_until_served(admin, kind).await?;
    }
    let list = json!({
        "apiVersion": "siege.test/v1", "kind": "Anything", "metadata": {"name": "list"}, "value": vec![0; 300_000]
    });
    create(admin, Call::post(ANYTHINGS, &list)).await?;
    for number in 0..300 {
        let labels = json!({"number": number.to_string(), "app": "siege"});
        let small = json!({"metadata": {"name": format!("small-{number}"), "labels": labels}});
        create(admin, Call::post(MAPS, &small)).await?;
    }
    Ok(())
}

/// Sends a request that creates an object, which may exist.
async fn create(admin: &Connection, call: Call) -> Result {
    let path = call.path.clone();
    let reply = admin.send(call).await?;
    if reply.code == 201 || reply.code == 409 {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&reply.body).chars().take(1_000).collect::<String>();
    Err(format!("{path}: {} {body}", reply.code).into())
}

async fn wait_until_served(admin: &Connection, plural: &str) -> Result {
    let path = format!("/apis/siege.test/v1/namespaces/{NAMESPACE}/{plural}");
    while admin.send(Call::get(&path)).await?.code != 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Returns a definition of the group `siege.test` with one version.
fn definition(kind: &str, schema: Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.siege.test")},
        "spec": {
            "group": "siege.test", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]
        }
    })
}

/// A schema whose pattern takes minutes on a long text.
fn slow_schema() -> Value {
    let slow = json!({"type": "string", "pattern": SLOW_PATTERN});
    json!({"type": "object", "properties": {
        "text": slow, "list": {"type": "array", "items": slow}
    }})
}

/// A pattern with tens of thousands of states.
const SLOW_PATTERN: &str = "(?:(?:x{1,30}){1,30}){1,30}y";

fn deployment() -> Value {
    let labels = json!({"app": "a"});
    json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    }})
}

/// Returns an attack by one request.
fn one(name: &'static str, call: Call) -> Attack {
    times(name, 1, call)
}

/// Returns an attack by equal requests at the same time.
fn times(name: &'static str, copies: usize, call: Call) -> Attack {
    Attack { name, means: Means::Requests { call, copies } }
}

/// Returns an attack by a conversation.
fn conversation(name: &'static str, talk: fn(Client) -> Task<Sent>) -> Attack {
    Attack { name, means: Means::Conversation(talk) }
}

/// Returns a request that creates an object in JSON.
fn post(path: &str, body: impl Into<String>) -> Call {
    Call::new(Method::POST, path).with(JSON, body.into())
}

/// Returns `count` copies of an item, with commas between the copies.
fn copies(item: &str, count: usize) -> String {
    let mut text = format!("{item},").repeat(count);
    text.pop();
    text
}

/// Returns a map with `count` keys.
fn keys(count: usize, value: &Value) -> Map<String, Value> {
    (0..count).map(|number| (format!("k{number:x}"), value.clone())).collect()
}
