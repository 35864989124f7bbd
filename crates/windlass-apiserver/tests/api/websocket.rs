//! Watches over WebSocket.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::harness::{Api, MERGE_PATCH, deadline};

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
        let message = tokio::time::timeout(deadline(), watch.next()).await.expect("a message in time");
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
async fn a_large_object_is_one_message() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let text = "x".repeat(300_000);
    for name in ["a", "b", "c"] {
        let data = if name == "b" { text.as_str() } else { "small" };
        let object = json!({"metadata": {"name": name, "labels": {"l": "1"}}, "data": {"k": data}});
        api.post(&maps, object).await.is(201);
    }
    let mut watch = api.websocket(&format!("{maps}?watch=true&labelSelector=l")).await.unwrap();
    api.patch(&format!("{maps}/b"), MERGE_PATCH, json!({"data": {"l": "m"}})).await.is(200);
    let mut events = Vec::new();
    while events.len() < 4 {
        let message = tokio::time::timeout(deadline(), watch.next()).await.expect("a message in time");
        if let Message::Text(event) = message.expect("an open connection").unwrap() {
            let event: Value = serde_json::from_str(&event).unwrap();
            let size = event["object"]["data"]["k"].as_str().map(str::len);
            events.push(format!("{} {} {size:?}", event["type"], event["object"]["metadata"]["name"]));
        }
    }
    let expected = [
        r#""ADDED" "a" Some(5)"#,
        r#""ADDED" "b" Some(300000)"#,
        r#""ADDED" "c" Some(5)"#,
        r#""MODIFIED" "b" Some(300000)"#,
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn a_watch_that_times_out_closes_the_connection() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps?watch=true&timeoutSeconds=1");
    let mut watch = api.websocket(&path).await.unwrap();
    loop {
        match tokio::time::timeout(deadline(), watch.next()).await.expect("an end in time") {
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

/// The status with which a WebSocket is refused.
fn refusal<S>(opened: Result<S, Error>) -> u16 {
    match opened {
        Err(Error::Http(reply)) => reply.status().as_u16(),
        Err(error) => panic!("not an answer: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

#[tokio::test]
async fn a_watch_answers_with_the_one_subprotocol_that_is_offered() {
    let api = Api::start();
    let path = "/api/v1/namespaces?watch=true";
    // A client refuses a response without an offered subprotocol.
    api.websocket_with(path, "base64.binary.k8s.io").await.unwrap();
    api.websocket_with(path, "something.else").await.unwrap();
    assert_eq!(refusal(api.websocket_with(path, "one, two").await), 400);
}

#[tokio::test]
async fn a_subprotocol_may_carry_the_token() {
    let api = Api::start();
    let ns = api.namespace().await;
    let account = format!("/api/v1/namespaces/{ns}/serviceaccounts");
    api.post(&account, json!({"metadata": {"name": "browser"}})).await.is(201);
    let issued = api.post(&format!("{account}/browser/token"), json!({"spec": {}})).await.is(201);
    let encoded = URL_SAFE_NO_PAD.encode(issued.at("/status/token").as_str().expect("a token"));
    let anonymous = api.anonymous();
    let ask = async |protocols: &str| {
        refusal(anonymous.websocket_with("/api/v1/nodes?watch=true", protocols).await)
    };
    // It is known, and may not watch nodes.
    assert_eq!(
        ask(&format!("base64url.bearer.authorization.k8s.io.{encoded}, base64.binary.k8s.io")).await,
        403
    );
    assert_eq!(ask(&format!("base64url.bearer.authorization.k8s.io.{encoded}")).await, 401);
    assert_eq!(ask("base64url.bearer.authorization.k8s.io.d3Jvbmc, base64.binary.k8s.io").await, 401);
}

#[tokio::test]
async fn a_log_is_sent_as_bytes_or_in_base64() {
    let api = Api::start();
    if api.is_shared() {
        // A real log needs a kubelet.
        return;
    }
    let pods = format!("/api/v1/namespaces/{}/pods", api.namespace().await);
    let log = "line\n".repeat(1000);
    let body = json!({
        "metadata": {"name": "a", "annotations": {"kubelet.windlass.dev/log": log}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    api.post(&pods, body).await.is(201);
    let path = format!("{pods}/a/log");
    for (protocol, is_text) in [("", false), ("binary.k8s.io", false), ("x, base64.binary.k8s.io", true)] {
        let mut socket = api.websocket_with(&path, protocol).await.unwrap();
        let mut received = Vec::new();
        while let Some(Ok(message)) = tokio::time::timeout(deadline(), socket.next()).await.expect("in time")
        {
            match message {
                Message::Binary(bytes) if !is_text => received.extend_from_slice(&bytes),
                Message::Text(text) if is_text => received.extend(STANDARD.decode(text.as_str()).unwrap()),
                Message::Close(_) => break,
                other => panic!("unexpected: {other:?}"),
            }
        }
        assert_eq!(String::from_utf8(received).unwrap(), log, "{protocol}");
    }
    assert_eq!(refusal(api.websocket_with(&path, "v4.channel.k8s.io").await), 403);
}
