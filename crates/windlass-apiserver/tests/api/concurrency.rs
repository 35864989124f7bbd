//! Lists and watches beside many writers: no event is lost, repeated or out of order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use windlass_patience::stretched;

use crate::harness::{Api, MERGE_PATCH};

const WRITERS: u32 = 64;
const WRITES: u32 = 12;
/// The number of names that are written in each namespace.
const NAMES: u64 = 20;
/// How long to wait for an event. Some watches are silent until the writers are done.
const LIMIT: Duration = Duration::from_secs(120);
/// The name of the object that ends the watches.
const LAST: &str = "last";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watches_beside_64_writers_see_each_write_once_and_in_order() {
    writers_and_watchers(Api::start()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watches_beside_64_writers_see_each_write_once_and_in_order_over_tls() {
    writers_and_watchers(Api::start_over_tls()).await;
}

async fn writers_and_watchers(api: Api) {
    let api = Arc::new(api);
    let first = api.namespace().await;
    let second = api.namespace_named(&format!("{first}-b")).await;
    let maps = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
    let scopes = [
        Scope { path: "/api/v1/configmaps".to_owned(), selector: format!("labelSelector=test%3D{}", api.id) },
        Scope { path: maps(&first), selector: format!("labelSelector=test%3D{}", api.id) },
        Scope { path: maps(&first), selector: "labelSelector=color%3Dred".to_owned() },
        Scope { path: maps(&second), selector: "labelSelector=color%21%3Dred,test".to_owned() },
        Scope { path: maps(&second), selector: format!("fieldSelector=metadata.name%3D{LAST}") },
    ];
    let mut watchers = JoinSet::new();
    for scope in &scopes {
        watchers.spawn(Watcher::start(&api, scope, Start::List, &second).await.run(Arc::clone(&api)));
    }
    let log = Arc::new(Mutex::new(Log::default()));
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let path = maps(if number % 2 == 0 { &first } else { &second });
        writers.spawn(write(Arc::clone(&api), path, number, Arc::clone(&log)));
    }
    for (index, scope) in scopes.iter().cycle().take(2 * scopes.len()).enumerate() {
        let start = if index < scopes.len() { Start::List } else { Start::Stream };
        watchers.spawn(Watcher::start(&api, scope, start, &second).await.run(Arc::clone(&api)));
    }
    writers.join_all().await;
    // The last object of each namespace is in all scopes that end with it.
    for (namespace, color) in [(&first, "red"), (&second, "blue")] {
        let reply = api.post(&maps(namespace), object(&api, LAST, color, "end")).await.is(201);
        log.lock().unwrap().written.push(reply.json());
    }
    let log = std::mem::take(&mut *log.lock().unwrap());
    assert!(log.written.len() > 300, "only {} writes", log.written.len());
    for watcher in watchers.join_all().await {
        watcher.check(&api, &log).await;
    }
}

/// The actions of the writers, in no particular order.
#[derive(Default)]
struct Log {
    /// The replies to creates, updates and patches.
    written: Vec<Value>,
}

async fn write(api: Arc<Api>, path: String, number: u32, log: Arc<Mutex<Log>>) {
    let mut random = u64::from(number);
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for round in 0..WRITES {
        let name = format!("m{}", draw(NAMES));
        let color = if draw(3) == 0 { "red" } else { "blue" };
        let value = format!("{number}-{round}");
        let one = format!("{path}/{name}");
        let operation = draw(8);
        let reply = match operation {
            0..3 => api.post(&path, object(&api, &name, color, &value)).await,
            3..5 => api.put(&one, object(&api, &name, color, &value)).await,
            5..7 => {
                let patch = json!({"metadata": {"labels": {"color": color}}, "data": {"by": value}});
                api.patch(&one, MERGE_PATCH, patch).await
            }
            _ => api.delete(&one).await,
        };
        match reply.code {
            200 | 201 if operation < 7 => log.lock().unwrap().written.push(reply.json()),
            // Other writers may have created or deleted the object in between.
            200 | 404 | 409 => {}
            _ => panic!("unexpected: {reply}"),
        }
    }
}

fn object(api: &Api, name: &str, color: &str, value: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"test": api.id, "color": color}}, "data": {"by": value}})
}

/// The objects of a list or a watch.
#[derive(Clone)]
struct Scope {
    path: String,
    selector: String,
}

impl Scope {
    /// Returns whether an object is in the scope, decided without the server.
    fn has(&self, object: &Value, api: &Api) -> bool {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap();
        let in_namespace = self.path == "/api/v1/configmaps" || self.path.contains(&format!("/{namespace}/"));
        in_namespace
            && match self.selector.as_str() {
                "labelSelector=color%3Dred" => metadata["labels"]["color"] == "red",
                "labelSelector=color%21%3Dred,test" => metadata["labels"]["color"] != "red",
                selector if selector.starts_with("fieldSelector") => metadata["name"] == LAST,
                _ => metadata["labels"]["test"] == api.id.as_str(),
            }
    }
}

/// How a watch gets its initial state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    List,
    Stream,
}

/// A client's cache, kept up to date by a watch.
struct Watcher {
    scope: Scope,
    watch: crate::harness::Watch,
    /// The resource version of the initial state.
    start: u64,
    syncing: bool,
    objects: BTreeMap<String, Value>,
    /// The resource versions of the objects that came after the initial state.
    versions: BTreeSet<u64>,
    last: u64,
    /// The namespace whose last object ends the watch.
    until: String,
}

impl Watcher {
    async fn start(api: &Api, scope: &Scope, start: Start, second: &str) -> Self {
        let Scope { path, selector } = scope;
        let mut objects = BTreeMap::new();
        let mut version = 0;
        let mut watch = if start == Start::List {
            let list = api.get(&format!("{path}?{selector}")).await.is(200);
            version = list.version();
            objects.extend(
                list.json()["items"].as_array().unwrap().iter().map(|item| (key(item), item.clone())),
            );
            api.watch(&format!("{path}?{selector}&resourceVersion={version}")).await
        } else {
            let initial = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
            api.watch(&format!("{path}?{selector}&{initial}")).await
        };
        assert_eq!(watch.code, 200);
        watch.limit = stretched(LIMIT);
        let namespace = path.split('/').nth(4).unwrap_or(second);
        Self {
            scope: scope.clone(),
            watch,
            start: version,
            syncing: start == Start::Stream,
            objects,
            versions: BTreeSet::new(),
            last: version,
            until: format!("{namespace}/{LAST}"),
        }
    }

    async fn run(mut self, api: Arc<Api>) -> Self {
        while self.syncing || !self.objects.contains_key(&self.until) {
            let Some(event) = self.watch.next_or_end().await else {
                // The real server closes the watch of a slow client. The client resumes the watch.
                assert!(api.is_shared() && !self.syncing, "the watch ended");
                let Scope { path, selector } = &self.scope;
                self.watch = api.watch(&format!("{path}?{selector}&resourceVersion={}", self.last)).await;
                self.watch.limit = stretched(LIMIT);
                continue;
            };
            let version = event.version();
            if self.syncing {
                if event.kind == "BOOKMARK" {
                    (self.syncing, self.start, self.last) = (false, version, version);
                } else {
                    assert_eq!(event.kind, "ADDED");
                    let earlier = self.objects.insert(key(&event.object), event.object);
                    assert_eq!(earlier, None, "an object is twice in the initial state");
                }
                continue;
            }
            if event.kind == "BOOKMARK" {
                assert!(version >= self.last, "a bookmark goes back: {event}");
                continue;
            }
            assert!(version > self.last, "after {}: {event}", self.last);
            self.last = version;
            let key = key(&event.object);
            let earlier = if event.kind == "DELETED" {
                self.objects.remove(&key)
            } else {
                self.versions.insert(version);
                self.objects.insert(key.clone(), event.object.clone())
            };
            assert_eq!(earlier.is_some(), event.kind != "ADDED", "{key} is known: {event}");
        }
        self
    }

    async fn check(self, api: &Api, log: &Log) {
        let Scope { path, selector } = &self.scope;
        let list = api.get(&format!("{path}?{selector}")).await.is(200).json();
        // Items of a list do not repeat their kind.
        let contents = |object: &Value| (key(object), [object["metadata"].clone(), object["data"].clone()]);
        let listed: BTreeMap<_, _> = list["items"].as_array().unwrap().iter().map(contents).collect();
        let cached: BTreeMap<_, _> = self.objects.values().map(contents).collect();
        assert_eq!(cached, listed, "the final state of {path}?{selector}");
        let written: BTreeSet<u64> = log
            .written
            .iter()
            .filter(|object| self.scope.has(object, api))
            .map(|object| object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
            .filter(|version| *version > self.start)
            .collect();
        assert_eq!(self.versions, written, "the writes to {path}?{selector}");
    }
}

fn key(object: &Value) -> String {
    let part = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
    format!("{}/{}", part("namespace"), part("name"))
}
