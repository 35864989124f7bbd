//! Watches: resuming, bookmarks, selections, the end.

use jiff::Timestamp;
use serde_json::json;

use windlass_apiserver::{Clock, Identity, Server};

use crate::harness::{CONFIG_MAPS, Client, MERGE, client, config_map};

fn seen(change: &str, name: &str) -> (String, String) {
    (change.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_watch_begins_with_what_is_there_or_after_a_revision() {
    let client = client();
    let first = client.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let mut all = client.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    let mut later = client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", first.version())).await;
    client.post(CONFIG_MAPS, &config_map("b")).await.expect(201);
    client.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    assert_eq!(all.event().await, seen("ADDED", "a"));
    for watch in [&mut all, &mut later] {
        assert_eq!(watch.event().await, seen("ADDED", "b"));
        assert_eq!(watch.event().await, seen("DELETED", "a"));
    }
}

#[tokio::test]
async fn leaving_a_selection_is_a_deletion() {
    let client = client();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=1&labelSelector=on")).await;
    client.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let path = &format!("{CONFIG_MAPS}/a");
    client.patch(path, MERGE, &json!({"metadata": {"labels": {"on": "1"}}})).await.expect(200);
    assert_eq!(watch.event().await, seen("ADDED", "a"));
    let left = client.patch(path, MERGE, &json!({"metadata": {"labels": {"on": null}}})).await.expect(200);
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["metadata"]["labels"], json!({"on": "1"}));
    assert_eq!(event["object"]["metadata"]["resourceVersion"], left.version());
}

#[tokio::test]
async fn the_initial_state_ends_with_a_bookmark() {
    let client = client();
    client.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(watch.event().await, seen("ADDED", "a"));
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_sends_bookmarks_and_ends_in_time() {
    let client = client();
    let path = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=5");
    let mut watch = client.watch(&path).await;
    // What happens elsewhere moves the bookmark on.
    let elsewhere = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}});
    let created = client.post(elsewhere, &secret).await.expect(201);
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], created.version());
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn history_that_is_forgotten_has_expired() {
    let server = Server::builder().seed(1).build().unwrap();
    let client = Client::of(&server, Identity::admin());
    let first = client.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    client.post(CONFIG_MAPS, &config_map("b")).await.expect(201);
    let page = client.get(&format!("{CONFIG_MAPS}?limit=1")).await.expect(200);
    client.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    server.compact();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", first.version())).await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(watch.next().await, None);
    let token = page.body["metadata"]["continue"].as_str().unwrap();
    let expired = client.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.expect(410);
    let token = expired.body["metadata"]["continue"].as_str().unwrap();
    let rest = client.get(&format!("{CONFIG_MAPS}?continue={token}")).await.expect(200);
    assert_eq!(rest.body["items"].as_array().unwrap().len(), 2);
}

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
async fn a_server_that_starts_anew_tells_old_watches_that_their_revision_expired() {
    let before = Client::of(&server_at("2030-01-01T00:00:00Z"), Identity::admin());
    let mut last = before.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    for name in ["b", "c", "d"] {
        last = before.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    let after = Client::of(&server_at("2030-01-01T00:00:01Z"), Identity::admin());
    let mut watch = after.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", last.version())).await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn revisions_begin_at_the_microseconds_of_the_clock() {
    let list = async || {
        let client = Client::of(&server_at("2030-01-01T00:00:00Z"), Identity::admin());
        client.get(CONFIG_MAPS).await.expect(200).version().parse::<i64>().unwrap()
    };
    let start = "2030-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_microsecond();
    let revision = list().await;
    assert!((start..start + 100).contains(&revision), "{revision}, the clock says {start}");
    assert_eq!(list().await, revision, "the same clock gives the same revisions");
}

#[tokio::test]
async fn a_snapshot_served_later_is_another_history() {
    let first = server_at("2030-01-01T00:00:00Z");
    let created = Client::of(&first, Identity::admin()).post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let clock = At("2030-01-02T00:00:00Z".parse().unwrap());
    let second = Server::builder().snapshot(&first.snapshot()).clock(clock).build().unwrap();
    let client = Client::of(&second, Identity::admin());
    let kept = client.get(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    assert_eq!(kept.version(), created.version());
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", created.version());
    assert_eq!(client.watch(&path).await.next().await.unwrap()["object"]["code"], 410);
}

#[tokio::test]
async fn a_watch_of_a_later_revision_begins_there() {
    let client = client();
    let now: u64 = client.get(CONFIG_MAPS).await.expect(200).version().parse().unwrap();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", now + 2)).await;
    for name in ["a", "b", "c"] {
        client.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    assert_eq!(watch.event().await, seen("ADDED", "c"));
}

#[tokio::test(start_paused = true)]
async fn no_bookmark_confirms_a_revision_that_the_server_does_not_have() {
    let client = client();
    let now: u64 = client.get(CONFIG_MAPS).await.expect(200).version().parse().unwrap();
    let query = "watch=1&allowWatchBookmarks=true&timeoutSeconds=5";
    let path = format!("{CONFIG_MAPS}?{query}&resourceVersion={}", now + 1000);
    let mut watch = client.watch(&path).await;
    client.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    assert_eq!(watch.next().await, None);
}
