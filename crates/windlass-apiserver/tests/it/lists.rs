//! Lists: pages, selectors, revisions.

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Reply, client, config_map};

fn names(list: &Reply) -> Vec<&str> {
    let items = list.body["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pages_are_of_one_revision() {
    let client = client();
    for name in ["a", "b", "c"] {
        client.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    let first = client.get(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first.body["metadata"]["remainingItemCount"], 1);
    client.post(CONFIG_MAPS, &config_map("d")).await.expect(201);
    client.delete(&format!("{CONFIG_MAPS}/c")).await.expect(200);
    let token = first.body["metadata"]["continue"].as_str().unwrap();
    let second = client.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!(names(&second), ["c"]);
    assert_eq!(second.version(), first.version());
    assert_eq!(second.body["metadata"]["continue"], Value::Null);
    let exact = format!("{CONFIG_MAPS}?resourceVersion={}&resourceVersionMatch=Exact", first.version());
    assert_eq!(names(&client.get(&exact).await.expect(200)), ["a", "b", "c"]);
}

#[tokio::test]
async fn selectors_select() {
    let client = client();
    for (name, tier) in [("a", "x"), ("b", "y")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"tier": tier});
        client.post(CONFIG_MAPS, &object).await.expect(201);
    }
    let get = async |query: &str| client.get(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(names(&get("labelSelector=tier%3Dx").await), ["a"]);
    assert_eq!(names(&get("labelSelector=tier+notin+(x)").await), ["b"]);
    assert_eq!(names(&get("fieldSelector=metadata.name!=a").await), ["b"]);
    let unknown = get("fieldSelector=foo=bar").await.expect(400);
    assert_eq!(
        unknown.message(),
        "\"foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
}

/// A revision that no test reaches.
const FUTURE: u64 = 9_000_000_000_000_000;

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_not_there_yet_times_out() {
    for version_match in ["", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact"] {
        let path = format!("{CONFIG_MAPS}?resourceVersion={FUTURE}{version_match}");
        let reply = client().get(&path).await.expect(504);
        assert_eq!(reply.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(reply.body["details"]["retryAfterSeconds"], 1);
        assert_eq!(reply.headers["retry-after"], "1");
    }
}

#[tokio::test]
async fn a_long_list_is_whole_whichever_way_it_is_sent() {
    let client = client();
    let mut object = config_map("x");
    object["data"]["a"] = json!("v".repeat(100_000));
    for index in 0..8 {
        object["metadata"]["name"] = json!(format!("x{index}"));
        client.post(CONFIG_MAPS, &object).await.expect(201);
    }
    let in_pieces = client.get(CONFIG_MAPS).await.expect(200);
    assert_eq!(names(&in_pieces).len(), 8);
    assert!(!in_pieces.headers.contains_key("content-encoding"));
    let whole = client.get(&format!("{CONFIG_MAPS}?pretty=true")).await.expect(200);
    assert_eq!(whole.body, in_pieces.body);
}
