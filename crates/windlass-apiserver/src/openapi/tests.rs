//! Clients that ask for the same document at the same moment.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::future::join_all;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower_service::Service;

use crate::{Identity, InProcess, Server};

async fn send(service: &InProcess, request: Request<Full<Bytes>>) -> Vec<Bytes> {
    let Ok(reply) = service.clone().call(request).await;
    assert!(reply.status().is_success(), "{}", reply.status());
    let mut body = reply.into_body();
    let mut pieces = Vec::new();
    while let Some(frame) = body.frame().await {
        pieces.extend(frame.unwrap().into_data());
    }
    pieces
}

async fn get(service: &InProcess, path: &str, headers: &[(&str, &str)]) -> Vec<Bytes> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(service, request.body(Full::default()).unwrap()).await
}

fn definition(plural: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": plural.to_uppercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

/// Asks for a document `count` times at the same moment. Returns the places in memory of the first pieces, and the text of a reply.
async fn ask(service: &InProcess, count: usize, path: &str, headers: &[(&str, &str)]) -> (usize, Vec<u8>) {
    let replies = join_all((0..count).map(|_| get(service, path, headers))).await;
    let places: BTreeSet<*const u8> = replies.iter().map(|pieces| pieces[0].as_ptr()).collect();
    (places.len(), replies[0].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_document_is_made_once_for_all_clients_that_ask_at_the_same_moment() {
    const PROTOBUF: (&str, &str) = ("accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
    const GZIP: (&str, &str) = ("accept-encoding", "gzip");
    let server = Server::builder().build().unwrap();
    let service = server.service(Identity::admin());
    for plural in ["firsts", "seconds"] {
        let create = Request::builder()
            .method(Method::POST)
            .uri("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            .header("content-type", "application/json")
            .body(Full::from(definition(plural).to_string()))
            .unwrap();
        send(&service, create).await;
        let path = format!("/apis/example.com/v1/{plural}");
        get(&service, &path, &[]).await;
        // The definition is new, and so are the documents.
        for headers in [&[][..], &[PROTOBUF], &[GZIP], &[PROTOBUF, GZIP]] {
            let (made, document) = ask(&service, 20, "/openapi/v2", headers).await;
            assert_eq!(made, 1, "/openapi/v2 {headers:?}");
            let is_compressed = headers.contains(&GZIP);
            assert_eq!(document.starts_with(&[0x1f, 0x8b]), is_compressed, "{headers:?}");
            let name = plural.to_uppercase();
            let is_named = document.windows(name.len()).any(|part| part == name.as_bytes());
            assert!(is_compressed || is_named, "{headers:?}: the document does not describe {name}");
        }
        let (made, _) = ask(&service, 20, "/openapi/v3/apis/example.com/v1", &[]).await;
        assert_eq!(made, 1, "/openapi/v3");
    }
}
