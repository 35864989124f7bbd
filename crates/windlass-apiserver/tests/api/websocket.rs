//! Watches over WebSocket.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::harness::{Api, DEADLINE, MERGE_PATCH};

#[tokio::test]
async fn a_watch_sends_each_event_as_a_text_message() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&maps, json!({"metadata": {"name": "a", "labels": {"l": "1"}}})).await.is(201);
    let from = created.version();
    let mut watch =
        api.websocket(&format!("{maps}?watch=true&labelSelector=l&resourceVersion={from}")).await.unwrap();
    api.patch(&format!("{maps}/a"), MERGE_PATCH, json!({"data": {"k": "v"}})).await.is(200);
    api.post(&maps, json!({"metadata": {"name": "b"}})).await.is(201);
    watch.send(Message::Text("ignored".into())).await.unwrap();
    watch.send(Message::Ping("still there?".into())).await.unwrap();
    api.delete(&format!("{maps}/a")).await.is(200);
    let (mut events, mut pongs) = (Vec::new(), 0);
    while events.len() < 2 || pongs < 1 {
        let message = tokio::time::timeout(DEADLINE, watch.next()).await.expect("a message in time");
        match message.expect("an open connection").unwrap() {
            Message::Text(text) => {
                let event: Value = serde_json::from_str(&text).unwrap();
                events.push(format!("{} {}", event["type"], event["object"]["metadata"]["name"]));
            }
            Message::Pong(_) => pongs += 1,
            message => panic!("unexpected: {message}"),
        }
    }
    assert_eq!(events, [r#""MODIFIED" "a""#, r#""DELETED" "a""#]);
    watch.close(None).await.unwrap();
}

#[tokio::test]
async fn a_watch_that_times_out_closes_the_connection() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps?watch=true&timeoutSeconds=1");
    let mut watch = api.websocket(&path).await.unwrap();
    loop {
        match tokio::time::timeout(DEADLINE, watch.next()).await.expect("an end in time") {
            Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            Some(Ok(_)) => {}
        }
    }
}

#[tokio::test]
async fn what_is_refused_is_refused_over_http() {
    let api = Api::start();
    let refused = api.anonymous().websocket("/api/v1/namespaces?watch=true").await;
    let Err(Error::Http(reply)) = refused else { panic!("not refused: {refused:?}") };
    assert_eq!(reply.status().as_u16(), 403);
    let missing = api.websocket("/api/v1/nothings?watch=true").await;
    let Err(Error::Http(reply)) = missing else { panic!("not refused: {missing:?}") };
    assert_eq!(reply.status().as_u16(), 404);
}
