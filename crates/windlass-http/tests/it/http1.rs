//! HTTP/1.1: servers without HTTP/2, clients with `Protocol::Http1`, and upgrades.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use hyper_util::rt::TokioIo;
use kube_client::client::Body;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};
use windlass_http::{HttpClient, Options, Protocol};

use crate::server::{Certificate, Reply, Seen, TestServer, client, exchange, get, post, soon};

#[tokio::test]
async fn a_server_without_http2_is_served_over_http1() {
    let certificate = Certificate::new();
    let tls = certificate.server_config(&["http/1.1"]);
    let mut server = TestServer::serve(tls, 0, 100, |_, _| Reply::Text("ok")).await;
    let client = client(certificate.config(server.address));
    for _ in 0..5 {
        assert_eq!(exchange(&client, post("/objects")).await, "ok");
    }
    assert_eq!(server.request().await.0, 2, "the first connection asked for HTTP/2");
    assert_eq!(server.count(), 2, "the connection is used again");
}

#[tokio::test]
async fn requests_that_begin_at_once_ask_for_http2_once() {
    let certificate = Certificate::new();
    let tls = certificate.server_config(&["http/1.1"]);
    let server = TestServer::serve(tls, 0, 100, |_, _| Reply::Text("ok")).await;
    let client = client(certificate.config(server.address));
    let texts = join_all((0..20).map(|_| exchange(&client, post("/objects")))).await;
    assert!(texts.iter().all(|text| text == "ok"), "{texts:?}");
    assert!(server.count() <= 21, "{} connections", server.count());
}

#[tokio::test]
async fn a_client_can_be_told_to_use_http1() {
    let certificate = Certificate::new();
    let server = TestServer::start(&certificate, |_, line| match line {
        // Over HTTP/2 an error.
        "GET /http1" => Reply::Text("ok"),
        _ => Reply::Reset(h2::Reason::HTTP_1_1_REQUIRED),
    })
    .await;
    let options = Options::default().protocol(Protocol::Http1);
    let client = HttpClient::new(certificate.config(server.address), options).expect("a client");
    let response = soon(client.send(get("/http1"))).await.expect("a response");
    assert_eq!(response.version(), http::Version::HTTP_11);
}

#[tokio::test]
async fn an_upgrade_has_a_connection_of_its_own() {
    let certificate = Certificate::new();
    let server = TestServer::start(&certificate, |_, line| match line {
        "GET /exec" => Reply::Echo,
        _ => Reply::Text("ok"),
    })
    .await;
    let client = client(certificate.config(server.address));
    assert_eq!(exchange(&client, get("/before")).await, "ok");
    let request = http::Request::get("/exec").header("connection", "upgrade").header("upgrade", "echo");
    let response = soon(client.send(request.body(Body::empty()).expect("a request"))).await;
    let mut response = response.expect("a response");
    assert_eq!(response.status(), 101);
    let upgraded = soon(hyper::upgrade::on(&mut response)).await.expect("upgraded");
    let mut stream = TokioIo::new(upgraded);
    stream.write_all(b"hello").await.expect("written");
    let mut echo = [0; 5];
    soon(stream.read_exact(&mut echo)).await.expect("read");
    assert_eq!(&echo, b"hello");
    assert_eq!(exchange(&client, get("/after")).await, "ok");
    assert_eq!(server.count(), 2, "one for requests, one for the upgrade");
}

#[tokio::test]
async fn a_dropped_write_runs_to_its_end() {
    let certificate = Certificate::new();
    let tls = certificate.server_config(&["http/1.1"]);
    let now = Arc::<Notify>::default();
    let later = now.clone();
    let mut server = TestServer::serve(tls, 0, 100, move |_, _| Reply::Later(later.clone())).await;
    let client = client(certificate.config(server.address));
    let sent = tokio::spawn({
        let client = client.clone();
        async move { client.send(post("/written")).await.map(drop) }
    });
    server.request().await;
    sent.abort();
    assert!(soon(sent).await.expect_err("dropped").is_cancelled());
    now.notify_one();
    // The server drops the exchange of a connection that was closed.
    assert_eq!(server.next().await, Seen::Answered("POST /written".to_owned()));
}

/// Returns a server and a client with three idle connections. As soon as the network is forgetful, the server gives the replies of `decide` on
/// these connections.
async fn with_idle_connections(
    decide: impl Fn(&str) -> Reply + Send + Sync + 'static,
) -> (TestServer, HttpClient) {
    let certificate = Certificate::new();
    let tls = certificate.server_config(&["http/1.1"]);
    let (forgetful, together) = (Arc::<AtomicBool>::default(), Arc::<Notify>::default());
    let (is_forgetful, later) = (forgetful.clone(), together.clone());
    let mut server = TestServer::serve(tls, 0, 100, move |connection, line| {
        if is_forgetful.load(Ordering::SeqCst) && connection <= 4 {
            return decide(line);
        }
        if line == "GET /together" { Reply::Later(later.clone()) } else { Reply::Text("ok") }
    })
    .await;
    let client = client(certificate.config(server.address));
    // The first connection asked for HTTP/2.
    let requests = (0..3).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { exchange(&client, get("/together")).await })
    });
    let requests: Vec<_> = requests.collect();
    for _ in 0..3 {
        server.request().await;
    }
    // A request may not wait for the notice yet.
    let notices = async {
        loop {
            together.notify_waiters();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let texts = tokio::select! {
        biased;
        texts = soon(join_all(requests)) => texts,
        () = notices => Vec::new(),
    };
    assert!(texts.iter().all(|text| text.as_ref().is_ok_and(|text| text == "later")), "{texts:?}");
    assert_eq!(server.count(), 4, "three idle connections");
    forgetful.store(true, Ordering::SeqCst);
    (server, client)
}

/// Sends a request that the server does not answer, until the caller gives up.
async fn give_up(client: &HttpClient) {
    let limit = Duration::from_millis(2500);
    assert!(tokio::time::timeout(limit, client.send(get("/lost"))).await.is_err(), "no answer");
}

async fn assert_next_is_answered(client: &HttpClient) {
    let next = tokio::time::timeout(Duration::from_secs(10), exchange(client, get("/next"))).await;
    assert_eq!(next.expect("a new connection"), "ok");
}

/// A network that forgets the open connections, and swallows everything on them.
#[tokio::test]
async fn idle_connections_get_no_request_after_seconds_without_any_answer() {
    let never = Arc::<Notify>::default();
    let (_server, client) = with_idle_connections(move |_| Reply::Later(never.clone())).await;
    give_up(&client).await;
    assert_next_is_answered(&client).await;
}

/// A network that forgets some of the open connections, and closes another.
#[tokio::test]
async fn a_connection_that_fails_is_no_answer() {
    let never = Arc::<Notify>::default();
    let (mut server, client) = with_idle_connections(move |line| match line {
        "GET /closed" => Reply::Close,
        _ => Reply::Later(never.clone()),
    })
    .await;
    let fail = async {
        while server.request().await.1 != "GET /lost" {}
        soon(client.send(get("/closed"))).await.expect_err("the connection is closed");
    };
    tokio::join!(give_up(&client), fail);
    assert_next_is_answered(&client).await;
}
