//! Lifetimes beyond a request: events that expire, and servers that continue from another server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::{Clock, Server};

use crate::fixtures::{config_map, group, widget, widgets_path};
use crate::harness::{Api, MERGE_PATCH};

const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A clock that a test moves.
#[derive(Clone)]
struct Hands(Arc<AtomicI64>);

impl Hands {
    fn at(time: &str) -> Self {
        let time: Timestamp = time.parse().unwrap();
        Self(Arc::new(AtomicI64::new(time.as_second())))
    }

    fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

fn event(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"},
        "reason": "Tested",
    })
}

#[tokio::test]
async fn events_expire_an_hour_after_their_last_write() {
    let clock = Hands::at("2030-01-02T03:04:05Z");
    let server = Server::builder().clock(clock.clone()).build().unwrap();
    let api = Api::embedded(&server);
    for name in ["a", "b"] {
        api.post(EVENTS, event(name)).await.is(201);
    }
    api.post("/api/v1/namespaces/default/configmaps", config_map("stays")).await.is(201);
    let version = api.get(EVENTS).await.version();
    let mut watch = api.watch(&format!("{EVENTS}?resourceVersion={version}")).await;
    clock.forward(1_800);
    api.patch(&format!("{EVENTS}/b"), MERGE_PATCH, json!({"count": 2})).await.is(200);
    clock.forward(1_799);
    assert_eq!(api.get(EVENTS).await.names(), ["a", "b"]);
    clock.forward(1);
    assert_eq!(api.get(EVENTS).await.names(), ["b"]);
    assert_eq!(watch.take(2).await, ["MODIFIED b", "DELETED a"]);
    // A server that goes on from here knows when the rest is due.
    let fork = Server::builder().clock(clock.clone()).snapshot(&server.snapshot()).build().unwrap();
    clock.forward(1_800);
    let fork = Api::embedded(&fork);
    assert!(fork.get(EVENTS).await.names().is_empty());
    fork.get("/api/v1/namespaces/default/configmaps/stays").await.is(200);
}

#[tokio::test]
async fn a_list_can_be_continued_for_five_minutes() {
    let clock = Hands::at("2030-01-02T03:04:05Z");
    let api = Api::embedded(&Server::builder().clock(clock.clone()).build().unwrap());
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b", "c", "d"] {
        api.post(maps, config_map(name)).await.is(201);
    }
    let page = api.get(&format!("{maps}?limit=1")).await.is(200);
    clock.forward(299);
    let token = page.text_at("/metadata/continue");
    let page = api.get(&format!("{maps}?limit=1&continue={token}")).await.is(200);
    // The next page does not begin the time again.
    clock.forward(1);
    let token = page.text_at("/metadata/continue");
    let expired = api.get(&format!("{maps}?limit=1&continue={token}")).await.is(410);
    let token = expired.text_at("/metadata/continue");
    let page = api.get(&format!("{maps}?limit=1&continue={token}")).await.is(200);
    assert_eq!(page.names(), ["c"]);
    let token = page.text_at("/metadata/continue");
    assert_eq!(api.get(&format!("{maps}?continue={token}")).await.is(200).names(), ["d"]);
}

#[tokio::test]
async fn a_server_with_a_seed_gives_out_no_uid_of_the_one_it_goes_on_from() {
    let clock = Hands::at("2030-01-02T03:04:05Z");
    let build = || Server::builder().seed(7).clock(clock.clone());
    let origin = build().build().unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let uids = async |server: &Server, names: [&str; 3]| {
        let api = Api::embedded(server);
        let mut uids = Vec::new();
        for name in names {
            uids.push(api.post(maps, config_map(name)).await.is(201).text_at("/metadata/uid"));
        }
        uids
    };
    let mut seen: Vec<String> = uids(&origin, ["a", "b", "c"]).await;
    for kind in ["namespaces", "services"] {
        let list = Api::embedded(&origin).get(&format!("/api/v1/{kind}")).await.json();
        let items = list["items"].as_array().unwrap().clone();
        seen.extend(items.iter().map(|item| item["metadata"]["uid"].as_str().unwrap().to_owned()));
    }
    let first = build().snapshot(&origin.snapshot()).build().unwrap();
    let from_first = uids(&first, ["d", "e", "f"]).await;
    let second = build().snapshot(&first.snapshot()).build().unwrap();
    let from_second = uids(&second, ["g", "h", "i"]).await;
    seen.extend(from_first.iter().cloned().chain(from_second));
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len());
    // The same steps from the same state give the same uids.
    let again = build().snapshot(&origin.snapshot()).build().unwrap();
    assert_eq!(uids(&again, ["d", "e", "f"]).await, from_first);
}

#[tokio::test]
async fn a_definition_that_was_going_when_the_server_ended_goes_on_going() {
    let server = Server::builder().build().unwrap();
    let api = Api::embedded(&server);
    let path = widgets_path(&api).await;
    let mut held = widget(&api, "a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(&path, held).await.is(201);
    let group = group(&api);
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    api.delete(&definition).await.is(200);
    let fork = Server::builder().snapshot(&server.snapshot()).build().unwrap();
    let later = Api::embedded(&fork);
    later.patch(&format!("{path}/a"), MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
    later.get(&definition).await.is(404);
}

#[tokio::test]
async fn items_of_a_list_leave_out_their_kind_in_every_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut body = event("a");
    body["involvedObject"]["namespace"] = json!(ns);
    api.post(&format!("/api/v1/namespaces/{ns}/events"), body).await.is(201);
    for path in
        [format!("/api/v1/namespaces/{ns}/events"), format!("/apis/events.k8s.io/v1/namespaces/{ns}/events")]
    {
        let list = api.get(&format!("{path}?fieldSelector=metadata.name=a")).await.json();
        let item = &list["items"][0];
        assert_eq!(item["metadata"]["name"], "a", "{path}");
        assert_eq!((item.get("kind"), item.get("apiVersion")), (None, None), "{path}");
    }
}
