//! When a body is read, and how long a request may take.

use std::time::{Duration, Instant};

use expect_test::expect;
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{Api, deadline};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_forbidden_request_is_refused_before_its_body_is_read() {
    let api = Api::start();
    let post = |path| api.request(Method::POST, path).body("application/json", "{\"a");
    let anonymous = api.anonymous();
    let refused = anonymous.request(Method::POST, MAPS).body("application/json", "{\"a").send_unfinished();
    refused.await.shows(expect![[r#"
        403 Forbidden: configmaps is forbidden: User "system:anonymous" cannot create resource "configmaps" in API group "" in the namespace "default"
        kind="configmaps""#]]);
    let wrong = api.with_token("wrong");
    let refused = wrong.request(Method::POST, MAPS).body("application/json", "{\"a").send_unfinished();
    refused.await.is(401);
    // The same head with rights waits for the rest.
    post(&format!("{MAPS}?timeout=1s")).send_unfinished().await.is(504);
}

#[tokio::test]
async fn a_forbidden_request_with_a_large_body_gets_its_reply_over_http1() {
    let api = Api::start();
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n{{\"a"
    );
    let mut connection = api.anonymous().connect().await;
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut reply = vec![0; 12];
    tokio::time::timeout(deadline(), connection.read_exact(&mut reply)).await.expect("a reply").unwrap();
    assert_eq!(String::from_utf8_lossy(&reply), "HTTP/1.1 403");

    // A client that writes the whole body before reading still finds the reply.
    let body = "v".repeat(200_000);
    let head = format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut connection = api.anonymous().connect().await;
    connection.write_all(head.as_bytes()).await.unwrap();
    for part in body.as_bytes().chunks(20_000) {
        connection.write_all(part).await.unwrap();
        connection.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    connection.read_exact(&mut reply).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&reply), "HTTP/1.1 403");
}

#[tokio::test]
async fn a_body_that_does_not_end_gets_504() {
    let api = Api::start();
    let start = Instant::now();
    let post = api.request(Method::POST, &format!("{MAPS}?timeout=1s")).body("application/json", "{\"a");
    let reply = post.send_unfinished().await.is(504);
    assert_eq!(reply.text_at("/reason"), "Timeout");
    assert_eq!(reply.text_at("/message"), "Timeout: request did not complete within the allotted timeout");
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_parameter_timeout_is_a_duration() {
    let api = Api::start();
    for good in ["32s", "1m30s", "0", "-1s"] {
        api.get(&format!("{MAPS}?timeout={good}")).await.is(200);
    }
    api.get(&format!("{MAPS}?timeout=abc")).await.shows(expect![[
        r#"400 BadRequest: invalid timeout specified in the request URL - time: invalid duration "abc""#
    ]]);
    api.get(&format!("{MAPS}?timeout=5")).await.shows(expect![[
        r#"400 BadRequest: invalid timeout specified in the request URL - time: missing unit in duration "5""#
    ]]);
    api.get("/version?timeout=x").await.is(400);
}
