//! Clients that read large replies slowly, or not at all.

use std::time::Duration;

use serde_json::json;

use super::frames::{END_HEADERS, END_STREAM, Frames, HEADERS, SETTINGS, WINDOW_UPDATE, head};
use super::{Attack, Sent, conversation, create, one};
use crate::client::{Call, Client};
use crate::{HttpsServer, Result};

/// The namespace of the large objects.
const LARGE: &str = "/api/v1/namespaces/siege-large/configmaps";
/// The number of the large objects, of about 1 MB each.
const COUNT: usize = 30;

pub(super) async fn prepare(client: Client) -> Result<Vec<HttpsServer>> {
    let admin = client.connect().await?;
    create(&admin, Call::post("/api/v1/namespaces", &json!({"metadata": {"name": "siege-large"}}))).await?;
    for number in 0..COUNT {
        let data: serde_json::Map<_, _> =
            (0..1_000).map(|key| (format!("key-{key}"), json!("value ".repeat(160)))).collect();
        let object = json!({"metadata": {"name": format!("large-{number}")}, "data": data});
        create(&admin, Call::post(LARGE, &object)).await?;
    }
    Ok(Vec::new())
}

pub(super) fn attacks() -> Vec<Attack> {
    let list = |accept: &'static str| {
        let mut call = Call::get(LARGE);
        call.accept = accept;
        call
    };
    vec![
        one("list of 30 MB in JSON", list("application/json")),
        one("list of 30 MB in protobuf", list("application/vnd.kubernetes.protobuf")),
        one("list of 30 MB in YAML", list("application/yaml")),
        one("list of 30 MB as a table", list("application/json;as=Table;v=v1;g=meta.k8s.io")),
        one("list of 30 MB in indented JSON", Call::get(format!("{LARGE}?pretty=true"))),
        one(
            "list of 30 MB as metadata",
            list("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        ),
        conversation("100 lists of 30 MB without a reader", |client| {
            Box::pin(unread(client, LARGE.to_owned(), 100))
        }),
        conversation("100 lists of 30 MB in YAML without a reader", |client| {
            Box::pin(unread_as(client, LARGE.to_owned(), 100, "application/yaml"))
        }),
        conversation("100 lists of 30 MB in protobuf without a reader", |client| {
            Box::pin(unread_as(client, LARGE.to_owned(), 100, "application/vnd.kubernetes.protobuf"))
        }),
        conversation("100 watches with initial events of 30 MB without a reader", |client| {
            let query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
            Box::pin(unread(client, format!("{LARGE}?{query}"), 100))
        }),
        conversation("100 watches of 100 MB of changes without a reader", |client| Box::pin(changes(client))),
    ]
}

async fn unread(client: Client, path: String, streams: u32) -> Result<Sent> {
    unread_as(client, path, streams, "application/json").await
}

/// Asks for large replies on many streams with large windows, and reads nothing.
async fn unread_as(client: Client, path: String, streams: u32, accept: &str) -> Result<Sent> {
    let mut all = Vec::new();
    for _ in 0..2 {
        let mut frames = open(&client).await?;
        for stream in 0..streams / 2 {
            request(&mut frames, stream, &path, accept);
        }
        frames.send().await;
        all.push(frames);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let bytes = all.iter().map(Frames::sent).sum();
    Ok(Sent { outcome: "unread".to_owned(), bytes, requests: streams as usize })
}

/// Opens a connection whose client reads nothing, with windows as large as possible.
async fn open(client: &Client) -> Result<Frames> {
    let mut frames = Frames::open(client, false).await?;
    // SETTINGS_INITIAL_WINDOW_SIZE of 2^31 - 1.
    frames.push(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    frames.push(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0, 0]);
    Ok(frames)
}

fn request(frames: &mut Frames, stream: u32, path: &str, accept: &str) {
    let head = head("GET", path, &[("accept", accept)]);
    frames.push(HEADERS, END_HEADERS | END_STREAM, 2 * stream + 1, &head);
}

/// Opens watches without reading the events, and changes large objects.
async fn changes(client: Client) -> Result<Sent> {
    let mut frames = open(&client).await?;
    for stream in 0..100 {
        request(&mut frames, stream, &format!("{LARGE}?watch=true"), "application/json");
    }
    frames.send().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let admin = client.connect().await?;
    let mut outcome = String::new();
    for number in 0..100 {
        let patch = json!({"metadata": {"annotations": {"number": number.to_string()}}});
        let call = Call::new(http::Method::PATCH, format!("{LARGE}/large-{}", number % COUNT));
        let reply = admin.send(call.with("application/merge-patch+json", patch.to_string())).await?;
        outcome = reply.code.to_string();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(Sent { outcome, bytes: frames.sent(), requests: 200 })
}
