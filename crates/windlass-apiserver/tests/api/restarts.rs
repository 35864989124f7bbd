//! Resource versions across servers and beyond the present. The tests set the clock, and therefore run on
//! embedded servers only.

use jiff::Timestamp;
use serde_json::json;
use windlass_apiserver::{Clock, Server};

use crate::fixtures::config_map;
use crate::harness::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A clock that stands still.
struct At(Timestamp);

impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }
}

fn server_at(time: &str) -> Server {
    Server::builder().seed(1).clock(At(time.parse().unwrap())).build().unwrap()
}

#[tokio::test]
async fn a_watch_of_an_earlier_server_has_expired() {
    let before = Api::embedded(&server_at("2030-01-01T00:00:00Z"));
    let mut last = 0;
    for name in ["a", "b", "c", "d"] {
        last = before.post(MAPS, config_map(name)).await.is(201).version();
    }
    let after = Api::embedded(&server_at("2030-01-01T00:00:01Z"));
    let mut watch = after.watch(&format!("{MAPS}?resourceVersion={last}")).await;
    let event = watch.next().await;
    assert_eq!((event.kind.as_str(), &event.object["code"]), ("ERROR", &json!(410)));
    assert_eq!(event.object["reason"], "Expired");
    assert!(watch.rest().await.is_empty());
}

#[tokio::test]
async fn revisions_begin_at_the_microseconds_of_the_clock() {
    let revision =
        async || Api::embedded(&server_at("2030-01-01T00:00:00Z")).get(MAPS).await.is(200).version();
    let start = "2030-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_microsecond();
    let start = u64::try_from(start).unwrap();
    let first = revision().await;
    assert!((start..start + 1000).contains(&first), "{first}, the clock says {start}");
    assert_eq!(revision().await, first, "the same clock gives the same revisions");
}

#[tokio::test]
async fn a_server_from_a_snapshot_has_no_earlier_history() {
    let first = server_at("2030-01-01T00:00:00Z");
    let version = Api::embedded(&first).post(MAPS, config_map("a")).await.is(201).version();
    let clock = At("2030-01-02T00:00:00Z".parse().unwrap());
    let second = Server::builder().snapshot(&first.snapshot()).clock(clock).build().unwrap();
    let api = Api::embedded(&second);
    assert_eq!(api.get(&format!("{MAPS}/a")).await.is(200).version(), version);
    let mut watch = api.watch(&format!("{MAPS}?resourceVersion={version}")).await;
    assert_eq!(watch.next().await.object["code"], 410);
}

#[tokio::test]
async fn a_list_goes_on_with_what_is_there_when_its_revision_has_expired() {
    let api = Api::embedded(&Server::builder().build().unwrap());
    for name in ["a", "b"] {
        api.post(MAPS, config_map(name)).await.is(201);
    }
    let page = api.get(&format!("{MAPS}?limit=1")).await.is(200);
    api.post(MAPS, config_map("c")).await.is(201);
    api.compact();
    let token = page.text_at("/metadata/continue");
    let expired = api.get(&format!("{MAPS}?limit=1&continue={token}")).await.is(410);
    let token = expired.text_at("/metadata/continue");
    assert_eq!(api.get(&format!("{MAPS}?continue={token}")).await.is(200).names(), ["b", "c"]);
}

#[tokio::test]
async fn a_watch_of_a_later_revision_begins_there() {
    let api = Api::embedded(&Server::builder().build().unwrap());
    let now = api.get(MAPS).await.is(200).version();
    let mut watch = api.watch(&format!("{MAPS}?resourceVersion={}", now + 2)).await;
    for name in ["a", "b", "c"] {
        api.post(MAPS, config_map(name)).await.is(201);
    }
    assert_eq!(watch.take(1).await, ["ADDED c"]);
}

#[tokio::test(start_paused = true)]
async fn no_bookmark_confirms_a_revision_that_the_server_does_not_have() {
    let api = Api::embedded(&Server::builder().build().unwrap());
    let later = api.get(MAPS).await.is(200).version() + 1000;
    let query = "allowWatchBookmarks=true&timeoutSeconds=5";
    let mut watch = api.watch(&format!("{MAPS}?{query}&resourceVersion={later}")).await;
    api.post(MAPS, config_map("a")).await.is(201);
    assert!(watch.rest().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_moves_on_with_the_changes_of_other_kinds() {
    let api = Api::embedded(&Server::builder().build().unwrap());
    let mut watch = api.watch(&format!("{MAPS}?allowWatchBookmarks=true&timeoutSeconds=5")).await;
    let secret = json!({"metadata": {"name": "s"}});
    let version = api.post("/api/v1/namespaces/default/secrets", secret).await.is(201).version();
    let events = watch.rest().await;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    // The first bookmark is the end of the present state.
    assert_eq!(kinds, ["BOOKMARK", "BOOKMARK"]);
    assert_eq!(events[1].version(), version);
}
