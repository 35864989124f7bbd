//! Random requests to all resources: all verbs, media types and options, with objects made from the server's own schemas.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Call, Reply};
use crate::schema::{Description, Resource};
use crate::value::Values;
use crate::{Client, Result, Target};

/// The number of clients.
const CLIENTS: u64 = 8;
/// The longest time of a request.
const MAX_TIME: Duration = Duration::from_secs(10);
const NAMESPACE: &str = "fuzz";
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Resources that make all later requests slow or impossible by design: webhooks.
const LEFT_OUT: [&str; 3] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations", "proxy"];

const QUERIES: &[&str] = &[
    "",
    "",
    "",
    "",
    "dryRun=All",
    "fieldValidation=Strict",
    "fieldValidation=Warn",
    "fieldManager=f",
    "force=true&fieldManager=g",
    "pretty=true",
    "limit=1",
    "limit=-1",
    "limit=5&continue=x",
    "resourceVersion=0",
    "resourceVersion=1",
    "resourceVersion=99999999999999999",
    "resourceVersion=0&resourceVersionMatch=Exact",
    "labelSelector=a",
    "labelSelector=a%20in%20(b,c)",
    "labelSelector=!!",
    "fieldSelector=metadata.name%3Df0",
    "fieldSelector=spec.x%3D1",
    "propagationPolicy=Foreground",
    "propagationPolicy=Orphan",
    "gracePeriodSeconds=-1",
    "gracePeriodSeconds=0",
    "timeout=1s",
    "timeout=x",
    "timeoutSeconds=1",
    "watch=true&timeoutSeconds=1",
    "sendInitialEvents=true&watch=true&timeoutSeconds=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "%zz",
    "dryRun=x",
];

const ACCEPTS: &[&str] = &[
    JSON,
    JSON,
    JSON,
    JSON,
    JSON,
    JSON,
    "application/vnd.kubernetes.protobuf,application/json",
    PROTOBUF,
    "application/yaml",
    "*/*",
    "application/cbor",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=Nothing;v=v9;g=x",
];

const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The replies so far.
#[derive(Default)]
struct Log {
    codes: BTreeMap<u16, u64>,
    found: Vec<String>,
    slowest: Duration,
}

/// Sends random requests for `time`, and prints the number of replies by code. Returns descriptions of the replies that no server should give: panics, and
/// replies after ten seconds.
///
/// # Errors
/// The server ends.
pub async fn run(target: &Target, seed: u64, time: Duration) -> Result<Vec<String>> {
    let admin = target.admin.connect().await?;
    let description = Arc::new(Description::of(&admin).await?);
    let log = Arc::new(Mutex::new(Log::default()));
    let end = Instant::now() + time;
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let seed = seed.wrapping_mul(1_000).wrapping_add(number);
        clients.spawn(client(target.admin.clone(), Arc::clone(&description), seed, end, Arc::clone(&log)));
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let alive = admin.send(Call::get("/livez")).await?.code;
    let log = std::mem::take(&mut *log.lock().map_err(|_| "a client panicked")?);
    let total: u64 = log.codes.values().sum();
    println!(
        "{total} requests to {} resources, slowest {:?}; replies: {:?}",
        description.resources.len(),
        log.slowest,
        log.codes
    );
    log.found.iter().for_each(|found| println!("{found}"));
    if alive != 200 {
        return Err(format!("/livez: {alive}").into());
    }
    Ok(log.found)
}

/// Sends requests until `end`.
async fn client(
    user: Client,
    description: Arc<Description>,
    seed: u64,
    end: Instant,
    log: Arc<Mutex<Log>>,
) -> Result {
    let mut connection = user.connect().await?;
    let mut generator = Generator { values: Values::new(&description, seed), seen: Vec::new() };
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    let mut number = 0;
    while Instant::now() < end {
        if number % 200 == 0 {
            connection.send(Call::post("/api/v1/namespaces", &namespace)).await?;
        }
        number += 1;
        let call = generator.call();
        let shown = format!("{} {} ({}, {})", call.method, call.path, call.content_type, call.accept);
        let body = call.body.clone();
        let reply = match connection.send(call).await {
            Ok(reply) => reply,
            Err(error) => {
                // The server may end a connection, but must accept the next connection.
                connection = user.connect().await.map_err(|why| format!("{shown}: {error}; then {why}"))?;
                continue;
            }
        };
        generator.see(&reply);
        let is_panic = reply.code == 500 && contains(&reply.body, b"the request handler failed");
        let mut log = log.lock().map_err(|_| "a client panicked")?;
        *log.codes.entry(reply.code).or_default() += 1;
        log.slowest = log.slowest.max(reply.took);
        if is_panic || reply.took > MAX_TIME {
            let body = String::from_utf8_lossy(&body[..body.len().min(2_000)]).into_owned();
            log.found.push(format!("seed {seed}, {:?}: {shown} {body}: {}", reply.took, reply.code));
        }
    }
    Ok(())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Makes requests.
struct Generator<'a> {
    values: Values<'a>,
    /// Bodies of replies in protobuf.
    seen: Vec<Bytes>,
}

impl Generator<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.values.random.usize(..count.max(1))
    }

    fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Remembers a reply in protobuf as a body for later.
    fn see(&mut self, reply: &Reply) {
        if reply.code < 300 && reply.body.starts_with(b"k8s\0") && reply.body.len() < 100_000 {
            if self.seen.len() < 200 {
                self.seen.push(reply.body.clone());
            } else {
                let index = self.below(200);
                self.seen[index] = reply.body.clone();
            }
        }
    }

    fn call(&mut self) -> Call {
        let resources = &self.values.description.resources;
        let index = self.values.random.usize(..resources.len());
        let resource = &resources[index];
        if LEFT_OUT.iter().any(|name| resource.plural == *name || resource.subresource == *name) {
            return Call::get("/apis");
        }
        let name = format!("f{}", self.below(6));
        let verb = match resource.verbs.len() {
            0 => "get",
            count => &resource.verbs[self.below(count)],
        };
        let (method, is_named) = match verb {
            "create" => (Method::POST, !resource.subresource.is_empty()),
            "update" => (Method::PUT, true),
            "patch" => (Method::PATCH, true),
            "delete" => (Method::DELETE, true),
            "deletecollection" => (Method::DELETE, false),
            "list" | "watch" => (Method::GET, false),
            _ => (Method::GET, true),
        };
        let mut path = resource.path(NAMESPACE, if is_named { &name } else { "" });
        let query = self.choose(QUERIES);
        match (verb, query) {
            ("watch", _) => path.push_str("?watch=true&timeoutSeconds=1"),
            (_, "") => {}
            _ => path.extend(["?", query]),
        }
        let mut call = Call::new(method, path);
        call.accept = self.choose(ACCEPTS);
        let has_body =
            !matches!(call.method, Method::GET) && (call.method != Method::DELETE || self.below(3) == 0);
        if has_body { self.with_body(call, resource, &name) } else { call }
    }

    fn with_body(&mut self, call: Call, resource: &Resource, name: &str) -> Call {
        if call.method == Method::PATCH {
            return self.with_patch(call, resource, name);
        }
        if !self.seen.is_empty() && self.below(6) == 0 {
            let index = self.below(self.seen.len());
            let mut body = self.seen[index].to_vec();
            self.values.spoil_bytes(&mut body);
            return call.with(PROTOBUF, body);
        }
        let object = self.object(resource, name);
        let mut body = object.to_string().into_bytes();
        if self.below(20) == 0 {
            self.values.spoil_bytes(&mut body);
        }
        let types = [JSON, JSON, JSON, JSON, "application/yaml", "application/cbor", "text/plain", PROTOBUF];
        let content_type = self.choose(&types);
        call.with(content_type, body)
    }

    fn with_patch(&mut self, call: Call, resource: &Resource, name: &str) -> Call {
        let content_type = self.choose(&PATCHES);
        if content_type != PATCHES[0] {
            let object = self.object(resource, name);
            return call.with(content_type, object.to_string());
        }
        let paths = [
            "",
            "/metadata/labels",
            "/metadata/labels/a",
            "/spec",
            "/spec/x",
            "/data/a",
            "/status",
            "/metadata/name",
            "a",
            "/-",
            "/~2",
        ];
        let kinds = ["add", "remove", "replace", "move", "copy", "test", "none"];
        let operations: Value = (0..=self.below(4))
            .map(|_| {
                let value = self.values.anything(3);
                json!({"op": self.choose(&kinds), "path": self.choose(&paths), "from": self.choose(&paths), "value": value})
            })
            .collect();
        call.with(content_type, operations.to_string())
    }

    /// Returns an object of a resource, under the name of the request in most cases.
    fn object(&mut self, resource: &Resource, name: &str) -> Value {
        let mut object = self.values.object(resource.schema.as_deref());
        if self.below(20) > 0
            && let Some(members) = object.as_object_mut()
        {
            members.insert("apiVersion".to_owned(), json!(resource.api_version));
            members.insert("kind".to_owned(), json!(resource.kind));
            let metadata = members.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("name".to_owned(), json!(name));
                for field in ["namespace", "resourceVersion", "uid", "finalizers"] {
                    metadata.remove(field);
                }
            }
        }
        if self.below(10) == 0 {
            self.values.spoil(&mut object);
        }
        object
    }
}
