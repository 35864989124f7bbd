use std::time::Duration;

use futures::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Client,
    api::{Patch, PatchParams, PostParams, WatchParams},
    client::Body,
};
use serde_json::json;
use tokio::{io::AsyncReadExt, net::TcpListener, time::Instant};
use windlass_runtime::{BoxError, client::ClientBuilder};
use windlass_test::{TestCluster, stretched};

use crate::{
    fault::Faults,
    fixture::{SOON, config_map, config_maps, create_config_map},
};

#[tokio::test]
async fn a_refused_read_is_sent_again_when_the_server_said() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    let client = faults.client();
    faults.answer(Method::GET, "/configmaps/a", 429, "TooManyRequests", Some(1));
    let begun = Instant::now();
    config_maps(&client).get("a").await.expect("got at the second try");
    assert!(begun.elapsed() >= Duration::from_secs(1), "not before the server's time: {:?}", begun.elapsed());
    assert_eq!(faults.count(&Method::GET, "/configmaps/a"), 2);
}

#[tokio::test]
async fn a_create_that_may_have_happened_is_not_sent_again() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let client = faults.client();
    for (code, reason) in [(503, "ServiceUnavailable"), (504, "Timeout"), (500, "InternalError")] {
        faults.answer(Method::POST, "/configmaps", code, reason, Some(1));
        let answer = config_maps(&client).create(&PostParams::default(), &config_map("a")).await;
        let error = windlass_runtime::Error::from(answer.expect_err("the failure is handed on"));
        assert!(error.is_transient(), "{error}");
    }
    assert_eq!(faults.count(&Method::POST, "/configmaps"), 3);
}

#[tokio::test]
async fn a_create_that_was_refused_is_sent_again() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    faults.answer(Method::POST, "/configmaps", 429, "TooManyRequests", Some(0));
    create_config_map(&faults.client(), "a").await;
    assert_eq!(faults.count(&Method::POST, "/configmaps"), 2);
}

#[tokio::test]
async fn patience_ends() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let client = faults.client();
    for _ in 0..10 {
        faults.answer(Method::PATCH, "/configmaps/a", 429, "TooManyRequests", Some(0));
    }
    let patch = Patch::Merge(json!({ "data": { "x": "y" } }));
    let answer = config_maps(&client).patch("a", &PatchParams::default(), &patch).await;
    let error = windlass_runtime::Error::from(answer.expect_err("refused for good"));
    assert!(error.is_too_many_requests(), "{error}");
    assert_eq!(faults.count(&Method::PATCH, "/configmaps/a"), 5, "once and four times again");
}

#[tokio::test]
async fn many_requests_at_once_all_come_through() {
    let cluster = TestCluster::start().await;
    let client = Faults::before(cluster.client()).client();
    let creating = (0..300).map(|n| {
        let client = client.clone();
        async move { create_config_map(&client, &format!("m{n}")).await }
    });
    assert_eq!(futures::future::join_all(creating).await.len(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_an_error() {
    let service = tower::service_fn(|_: Request<Body>| async {
        let begun = stream::iter([Ok::<_, BoxError>(Frame::data(bytes::Bytes::from_static(b"{\"kind\": ")))]);
        Ok::<_, BoxError>(Response::new(StreamBody::new(begun.chain(stream::pending())).boxed_unsync()))
    });
    let client = windlass_runtime::client::in_process(service).expect("a client");
    let begun = Instant::now();
    let error = config_maps(&client).get("a").await.expect_err("it stalls");
    let error = windlass_runtime::Error::from(error);
    assert_eq!(begun.elapsed().as_secs(), 30);
    assert!(error.is_timeout() && error.is_transient(), "{error}");
    let begun = Instant::now();
    create(&client).await.expect_err("it stalls");
    assert_eq!(begun.elapsed().as_secs(), 30);
    let watch = config_maps(&client).watch(&WatchParams::default(), "0").await.expect("it begins");
    let first = tokio::time::timeout(Duration::from_secs(3600), std::pin::pin!(watch).next()).await;
    assert!(first.is_err(), "a watch may be silent: {first:?}");
}

/// A write that the caller gives up, for example after the loss of a Lease, must not arrive later.
#[tokio::test]
async fn a_write_that_is_dropped_outside_of_a_reconcile_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let config = kube_client::Config::new(url.parse().expect("a URL"));
    let client = ClientBuilder::new(config).build().expect("a client");
    let arrives = async {
        let (mut server, _) = listener.accept().await.expect("a connection");
        server.read_u8().await.expect("a request");
        server
    };
    let mut server = tokio::select! {
        _ = create(&client) => panic!("there is no answer"),
        server = arrives => server,
    };
    let mut request = Vec::new();
    let end = tokio::time::timeout(stretched(SOON), server.read_to_end(&mut request)).await;
    assert!(end.is_ok(), "the connection is closed");
}

async fn create(client: &Client) -> kube_client::Result<ConfigMap> {
    config_maps(client).create(&PostParams::default(), &config_map("a")).await
}
