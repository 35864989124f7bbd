//! HTTP/2, with servers that shut down, refuse, reset and break off.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use http::Request;
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch as channel},
};

use windlass_http::{HttpClient, Options};

use crate::server::{Certificate, Reply, Seen, TestServer, chain, client, exchange, get, post, soon, watch};

#[tokio::test]
async fn requests_share_a_connection_and_so_do_watches() {
    let certificate = Certificate::new();
    let server = TestServer::start(&certificate, |_, line| match line {
        "GET /watched" => Reply::Open,
        _ => Reply::Text("ok"),
    })
    .await;
    let client = client(certificate.config(server.address));
    let watches = join_all((0..30).map(|_| watch(&client))).await;
    let texts = join_all((0..60).map(|n| exchange(&client, post(&format!("/objects/{n}"))))).await;
    assert!(texts.iter().all(|text| text == "ok"), "{texts:?}");
    assert_eq!(server.count(), 2);
    drop(watches);
}

#[tokio::test]
async fn a_watch_beyond_the_servers_limit_opens_a_connection() {
    let certificate = Certificate::new();
    let tls = certificate.server_config(&["h2", "http/1.1"]);
    let server = TestServer::serve(tls, 0, 1, |_, _| Reply::Open).await;
    let client = client(certificate.config(server.address));
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(watch(&client).await);
    }
    assert_eq!(server.count(), 3);
    watches.pop();
    watches.push(watch(&client).await);
    assert_eq!(server.count(), 3, "a free stream is used again");
}

/// More watches at once than the server accepts: the client learns the limit with the connection.
#[tokio::test]
async fn watches_that_begin_at_once_are_all_answered() {
    let certificate = Certificate::new();
    let tls = certificate.server_config(&["h2"]);
    let server = TestServer::serve(tls, 0, 2, |_, _| Reply::Open).await;
    let client = client(certificate.config(server.address));
    let watches = join_all((0..6).map(|_| watch(&client))).await;
    assert_eq!(server.count(), 3);
    drop(watches);
}

/// More requests at once than the server accepts, before the client knows the limit.
#[tokio::test]
async fn requests_that_the_server_refuses_are_sent_again() {
    let certificate = Certificate::new();
    let tls = certificate.server_config(&["h2"]);
    let server = TestServer::serve(tls, 0, 1, |_, _| Reply::Text("ok")).await;
    let client = client(certificate.config(server.address));
    let texts = join_all((0..20).map(|_| exchange(&client, post("/objects")))).await;
    assert!(texts.iter().all(|text| text == "ok"), "{texts:?}");
}

#[tokio::test]
async fn a_refused_write_is_sent_again_and_a_reset_one_is_not() {
    let certificate = Certificate::new();
    let count = Arc::<AtomicUsize>::default();
    let counted = count.clone();
    let server = TestServer::start(&certificate, move |_, line| match line {
        "POST /refused" if counted.fetch_add(1, Ordering::SeqCst) == 0 => {
            Reply::Reset(h2::Reason::REFUSED_STREAM)
        }
        "POST /reset" => {
            counted.fetch_add(100, Ordering::SeqCst);
            Reply::Reset(h2::Reason::INTERNAL_ERROR)
        }
        _ => Reply::Text("ok"),
    })
    .await;
    let client = client(certificate.config(server.address));
    assert_eq!(exchange(&client, post("/refused")).await, "ok");
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let error = soon(client.send(post("/reset"))).await.expect_err("the stream was reset");
    assert!(!error.is_connect());
    assert!(chain(&error).contains("unexpected internal error encountered"), "{}", chain(&error));
    assert_eq!(count.load(Ordering::SeqCst), 102, "the server may have carried the request out");
}

#[tokio::test]
async fn a_server_that_shuts_down_gets_no_request_and_keeps_its_watches() {
    let certificate = Certificate::new();
    let server = TestServer::start(&certificate, |connection, line| match (connection, line) {
        (_, "GET /watched") => Reply::Open,
        (2, "GET /last") => Reply::GoAway,
        _ => Reply::Text("ok"),
    })
    .await;
    let client = client(certificate.config(server.address));
    let mut watch = watch(&client).await;
    assert_eq!(exchange(&client, get("/last")).await, "last");
    for _ in 0..20 {
        assert_eq!(exchange(&client, post("/objects")).await, "ok");
    }
    assert_eq!(server.count(), 3);
    let silent = tokio::time::timeout(Duration::from_millis(10), watch.frame()).await;
    assert!(silent.is_err(), "the watch goes on");
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_body_is_an_error_and_is_replaced() {
    let certificate = Certificate::new();
    let server = TestServer::start(&certificate, |_, line| match line {
        "GET /cut" => Reply::Cut,
        _ => Reply::Text("ok"),
    })
    .await;
    let client = client(certificate.config(server.address));
    let body = soon(client.send(get("/cut"))).await.expect("a response").into_body();
    let error = soon(body.collect()).await.expect_err("the body breaks off");
    assert!(chain(&error).starts_with("the exchange with the API server failed: "), "{}", chain(&error));
    assert_eq!(exchange(&client, get("/next")).await, "ok");
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn a_dropped_read_is_reset_and_a_dropped_write_runs_to_its_end() {
    let certificate = Certificate::new();
    let now = Arc::<Notify>::default();
    let later = now.clone();
    let mut server = TestServer::start(&certificate, move |_, _| Reply::Later(later.clone())).await;
    let client = client(certificate.config(server.address));
    for (request, reset) in [(get("/read"), true), (post("/written"), false)] {
        let sent = tokio::spawn({
            let client = client.clone();
            async move { client.send(request).await.map(drop) }
        });
        server.request().await;
        sent.abort();
        assert!(soon(sent).await.expect_err("dropped").is_cancelled());
        if reset {
            assert_eq!(server.next().await, Seen::Reset("GET /read".to_owned()));
        }
    }
    // A reset of the write would arrive before this request.
    let later_request = tokio::spawn(async move { client.send(get("/later")).await.map(drop) });
    assert!(matches!(server.next().await, Seen::Request { line, .. } if line == "GET /later"));
    now.notify_one();
    now.notify_one();
    let answered = [server.next().await, server.next().await];
    assert!(answered.contains(&Seen::Answered("POST /written".to_owned())), "{answered:?}");
    soon(later_request).await.expect("no panic").expect("answered");
}

#[tokio::test]
async fn a_dropped_watch_is_reset() {
    let certificate = Certificate::new();
    let mut server = TestServer::start(&certificate, |_, _| Reply::Open).await;
    let client = client(certificate.config(server.address));
    let watch = watch(&client).await;
    server.request().await;
    drop(watch);
    assert_eq!(server.next().await, Seen::Reset("GET /watched".to_owned()));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let client = client(Certificate::new().config(address));
    let errors = soon(join_all((0..10).map(|_| client.send(get("/"))))).await;
    for error in errors.into_iter().map(|answer| answer.expect_err("nobody listens")) {
        assert!(error.is_connect());
        let text = chain(&error);
        assert!(text.starts_with(&format!("cannot connect to the API server at {address}: ")), "{text}");
        assert!(text.contains("Connection refused"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_shake_hands_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let certificate = Certificate::new();
    let mut config = certificate.config(listener.local_addr().expect("an address"));
    config.connect_timeout = Some(Duration::from_millis(100));
    let error = soon(client(config).send(get("/"))).await.expect_err("no handshake");
    assert!(error.is_connect(), "{}", chain(&error));
}

/// A write that the runtime gives up, because the replica has lost its Lease, must not arrive later.
#[tokio::test]
async fn a_dropped_write_is_reset_if_the_caller_asks_for_that() {
    let certificate = Certificate::new();
    let now = Arc::<Notify>::default();
    let mut server = TestServer::start(&certificate, move |_, _| Reply::Later(now.clone())).await;
    let options = Options::default().cancels_dropped_writes(true);
    let client = HttpClient::new(certificate.config(server.address), options).expect("a client");
    let sent = tokio::spawn({
        let client = client.clone();
        async move { client.send(post("/written")).await.map(drop) }
    });
    server.request().await;
    sent.abort();
    // Long before the limit of a write that runs to its end.
    let reset = tokio::time::timeout(Duration::from_secs(30), server.next()).await;
    assert_eq!(reset.ok(), Some(Seen::Reset("POST /written".to_owned())));
}

/// A connection through a network that swallows everything: the next request gets another connection, long before the pings fail.
#[tokio::test]
async fn a_connection_that_answered_nothing_for_seconds_gets_no_further_request() {
    tokio::join!(lose(get("/lost")), lose(post("/lost")));
}

async fn lose(request: Request<Body>) {
    let certificate = Certificate::new();
    let never = Arc::<Notify>::default();
    let mut server = TestServer::start(&certificate, move |connection, _| match connection {
        1 => Reply::Later(never.clone()),
        _ => Reply::Text("ok"),
    })
    .await;
    let client = client(certificate.config(server.address));
    let limit = Duration::from_millis(2500);
    assert!(tokio::time::timeout(limit, client.send(request)).await.is_err(), "no answer");
    server.request().await;
    assert_eq!(exchange(&client, get("/next")).await, "ok");
    assert_eq!(server.count(), 2);
}

/// Passes some connections on to a server. All other connections hang. Returns the address, and the number of connections so far.
async fn hang(
    server: std::net::SocketAddr,
    passes: fn(usize) -> bool,
) -> (std::net::SocketAddr, channel::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let address = listener.local_addr().expect("an address");
    let (count, counted) = channel::channel(0);
    tokio::spawn(async move {
        let mut hanging = Vec::new();
        while let Ok((mut client, _)) = listener.accept().await {
            count.send_modify(|count| *count += 1);
            if !passes(*count.borrow()) {
                hanging.push(client);
                continue;
            }
            let mut server = TcpStream::connect(server).await.expect("the server is there");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (address, counted)
}

/// A packet was lost, or a firewall swallows packets for a while.
#[tokio::test]
async fn an_attempt_to_connect_that_hangs_holds_up_no_later_request() {
    let certificate = Certificate::new();
    let server = TestServer::start(&certificate, |_, _| Reply::Text("ok")).await;
    let mut config = certificate.config(hang(server.address, |number| number > 1).await.0);
    config.connect_timeout = Some(Duration::from_secs(3600));
    let client = client(config);
    let impatient = tokio::time::timeout(Duration::from_millis(50), client.send(get("/lost"))).await;
    assert!(impatient.is_err(), "the caller leaves at its own deadline");
    assert_eq!(exchange(&client, get("/next")).await, "ok");
    assert_eq!(server.count(), 1, "requests that wait share one attempt");
}

/// The server accepts one stream on a connection, and a firewall swallows the packets of all later connections.
#[tokio::test]
async fn a_free_stream_is_used_while_all_attempts_to_connect_hang() {
    let certificate = Certificate::new();
    let now = Arc::<Notify>::default();
    let later = now.clone();
    let tls = certificate.server_config(&["h2"]);
    let mut server = TestServer::serve(tls, 0, 1, move |_, line| match line {
        "GET /held" => Reply::Later(later.clone()),
        _ => Reply::Text("ok"),
    })
    .await;
    let (address, mut connections) = hang(server.address, |number| number == 1).await;
    let mut config = certificate.config(address);
    config.connect_timeout = Some(Duration::from_secs(3600));
    let client = client(config);
    let held = exchange(&client, get("/held"));
    let next = async {
        server.request().await;
        exchange(&client, get("/next")).await
    };
    let free = async {
        soon(connections.wait_for(|count| *count == 4)).await.expect("the most attempts are under way");
        now.notify_one();
    };
    let (held, next, ()) = tokio::join!(held, next, free);
    assert_eq!([held, next], ["later", "ok"]);
}

/// HTTP/2 flushes after each body that it does not copy.
#[tokio::test]
async fn requests_with_bodies_that_are_ready_together_leave_together() {
    let certificate = Certificate::new();
    let server = TestServer::start(&certificate, |_, _| Reply::Text("ok")).await;
    let (address, records) = count_records(server.address).await;
    let client = client(certificate.config(address));
    assert_eq!(exchange(&client, post("/first")).await, "ok");
    let before = records.load(Ordering::SeqCst);
    let write = |n| {
        let body = Body::from(vec![b'x'; 600]);
        exchange(&client, Request::post(format!("/{n}")).body(body).expect("a request"))
    };
    let texts = join_all((0..16).map(write)).await;
    assert!(texts.iter().all(|text| text == "ok"), "{texts:?}");
    let sent = records.load(Ordering::SeqCst) - before;
    assert!(sent < 8, "{sent} TLS records for 16 requests");
}

/// Returns the address of a relay to a server, and the number of TLS records that clients have sent.
async fn count_records(server: std::net::SocketAddr) -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("it listens");
    let address = listener.local_addr().expect("an address");
    let records = Arc::<AtomicUsize>::default();
    let counted = records.clone();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(server).await.expect("the server");
            tokio::spawn(relay(near, far, counted.clone()));
        }
    });
    (address, records)
}

async fn relay(near: TcpStream, far: TcpStream, records: Arc<AtomicUsize>) {
    let (mut from_client, mut to_client) = near.into_split();
    let (mut from_server, mut to_server) = far.into_split();
    let requests = async {
        let mut head = [0; 5];
        while from_client.read_exact(&mut head).await.is_ok() {
            let mut record = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
            from_client.read_exact(&mut record).await.expect("a whole record");
            records.fetch_add(1, Ordering::SeqCst);
            to_server.write_all(&[&head[..], &record].concat()).await.expect("written");
        }
    };
    let _ = tokio::join!(requests, tokio::io::copy(&mut from_server, &mut to_client));
}
