//! A server for tests: a closure of the test decides the replies.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube_client::{Config, client::Body};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use windlass_http::{HttpClient, Options, ResponseBody};

/// The reply of the server to one request.
pub(crate) enum Reply {
    Text(&'static str),
    /// Resets the stream.
    Reset(h2::Reason),
    /// Answers, and announces the end of the connection.
    GoAway,
    /// Sends a line, and keeps the response open.
    Open,
    /// Sends a part of the response, and closes the connection.
    Cut,
    /// Closes the connection without an answer (HTTP/1.1 only).
    Close,
    /// Answers when the test notifies the server.
    Later(Arc<Notify>),
    /// Refuses the credentials (HTTP/1.1 only).
    Unauthorized,
    /// Switches to another protocol (HTTP/1.1 only), and echoes.
    Echo,
}

/// An event of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Request {
        connection: usize,
        line: String,
    },
    /// The client reset the stream of a request.
    Reset(String),
    /// The server sent the whole response to a request.
    Answered(String),
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) seen: mpsc::UnboundedReceiver<Seen>,
    peers: mpsc::UnboundedReceiver<Vec<u8>>,
    task: JoinSet<()>,
}

pub(crate) struct Certificate {
    pub(crate) pem: String,
    pub(crate) key: String,
}

type Decide = Arc<dyn Fn(usize, &str) -> Reply + Send + Sync>;

#[derive(Clone)]
struct Setting {
    decide: Decide,
    max_streams: u32,
    seen: mpsc::UnboundedSender<Seen>,
    peers: mpsc::UnboundedSender<Vec<u8>>,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        Self { pem: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    pub(crate) fn server_config(&self, alpn: &[&str]) -> ServerConfig {
        let (chain, key) = self.parts();
        let builder = ServerConfig::builder().with_no_client_auth();
        let mut config = builder.with_single_cert(chain, key).expect("a certificate and its key");
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }

    pub(crate) fn parts(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let chain = CertificateDer::from_pem_slice(self.pem.as_bytes()).expect("a certificate");
        (vec![chain], PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key"))
    }

    /// Returns a configuration that trusts this certificate.
    pub(crate) fn config(&self, address: SocketAddr) -> Config {
        let mut config = Config::new(format!("https://{address}").parse().expect("a URL"));
        config.root_cert = Some(vec![self.parts().0[0].to_vec()]);
        config
    }
}

impl TestServer {
    pub(crate) async fn start(
        certificate: &Certificate,
        decide: impl Fn(usize, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::serve(certificate.server_config(&["h2", "http/1.1"]), 0, 100, decide).await
    }

    pub(crate) async fn serve(
        tls: ServerConfig,
        port: u16,
        max_streams: u32,
        decide: impl Fn(usize, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("it listens");
        let address = listener.local_addr().expect("an address");
        let (sender, seen) = mpsc::unbounded_channel();
        let (peer, peers) = mpsc::unbounded_channel();
        let setting = Setting { decide: Arc::new(decide), max_streams, seen: sender, peers: peer };
        let connections = Arc::<AtomicUsize>::default();
        let mut task = JoinSet::new();
        task.spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), setting, connections.clone()));
        Self { address, connections, seen, peers, task }
    }

    /// Closes the port and all connections.
    pub(crate) async fn stop(mut self) {
        self.task.shutdown().await;
    }

    pub(crate) fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits for the next event of the server.
    pub(crate) async fn next(&mut self) -> Seen {
        soon(self.seen.recv()).await.expect("the server is there")
    }

    /// Waits for the next connection with a client certificate, and returns the certificate.
    pub(crate) async fn peer(&mut self) -> Vec<u8> {
        soon(self.peers.recv()).await.expect("the server is there")
    }

    /// Waits for the next request, and returns the number of the connection and the request line.
    pub(crate) async fn request(&mut self) -> (usize, String) {
        loop {
            if let Seen::Request { connection, line } = self.next().await {
                return (connection, line);
            }
        }
    }
}

/// Waits for the output, with a time limit for busy machines.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let begun = tokio::time::Instant::now();
    loop {
        if let Ok(output) = tokio::time::timeout(Duration::from_millis(100), &mut future).await {
            return output;
        }
        let limit = windlass_patience::stretched(Duration::from_secs(20));
        assert!(begun.elapsed() < limit, "it takes longer than {limit:?}");
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, setting: Setting, connections: Arc<AtomicUsize>) {
    let mut tasks = JoinSet::new();
    while let Ok((tcp, _)) = listener.accept().await {
        let (tls, setting, connections) = (tls.clone(), setting.clone(), connections.clone());
        tasks.spawn(async move {
            let Ok(stream) = tls.accept(tcp).await else { return };
            let number = connections.fetch_add(1, Ordering::SeqCst) + 1;
            if let Some(peer) = stream.get_ref().1.peer_certificates() {
                let _ = setting.peers.send(peer[0].to_vec());
            }
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                serve_http2(stream, setting, number).await;
            } else {
                serve_http1(stream, setting, number).await;
            }
        });
    }
}

async fn serve_http2(stream: TlsStream<TcpStream>, setting: Setting, number: usize) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(setting.max_streams);
    if setting.max_streams < 100 {
        // Far away: requests are there before the client knows the limit.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    let mut tasks = JoinSet::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let line = format!("{} {}", request.method(), request.uri().path());
        let reply = (setting.decide)(number, &line);
        let _ = setting.seen.send(Seen::Request { connection: number, line: line.clone() });
        let seen = setting.seen.clone();
        match reply {
            Reply::Reset(reason) => respond.send_reset(reason),
            Reply::Text(text) => answer(respond, text),
            Reply::GoAway => {
                answer(respond, "last");
                connection.graceful_shutdown();
            }
            Reply::Cut => {
                let mut body = respond.send_response(Response::new(()), false).expect("a response");
                body.send_data("part".into(), false).expect("sent");
                // The connection writes while it is polled.
                let _ = tokio::time::timeout(Duration::from_millis(50), connection.accept()).await;
                return;
            }
            Reply::Open => {
                let mut body = respond.send_response(Response::new(()), false).expect("a response");
                body.send_data("begun".into(), false).expect("sent");
                tasks.spawn(async move {
                    let _ = std::future::poll_fn(|cx| body.poll_reset(cx)).await;
                    let _ = seen.send(Seen::Reset(line));
                });
            }
            Reply::Later(now) => {
                tasks.spawn(async move {
                    tokio::select! {
                        biased;
                        _ = std::future::poll_fn(|cx| respond.poll_reset(cx)) => {
                            let _ = seen.send(Seen::Reset(line));
                        }
                        () = now.notified() => {
                            answer(respond, "later");
                            let _ = seen.send(Seen::Answered(line));
                        }
                    }
                });
            }
            Reply::Close | Reply::Echo | Reply::Unauthorized => {
                respond.send_reset(h2::Reason::HTTP_1_1_REQUIRED);
            }
        }
    }
}

fn answer(mut respond: h2::server::SendResponse<Bytes>, text: &'static str) {
    if let Ok(mut body) = respond.send_response(Response::new(()), false) {
        let _ = body.send_data(text.into(), true);
    }
}

async fn serve_http1(stream: TlsStream<TcpStream>, setting: Setting, number: usize) {
    let service = service_fn(|mut request: Request<hyper::body::Incoming>| {
        let setting = setting.clone();
        async move {
            let line = format!("{} {}", request.method(), request.uri().path());
            let reply = (setting.decide)(number, &line);
            let _ = setting.seen.send(Seen::Request { connection: number, line: line.clone() });
            let text = match reply {
                Reply::Echo => {
                    let upgrade = hyper::upgrade::on(&mut request);
                    tokio::spawn(async move {
                        let (mut read, mut write) =
                            tokio::io::split(TokioIo::new(upgrade.await.expect("upgraded")));
                        let _ = tokio::io::copy(&mut read, &mut write).await;
                    });
                    let switch = Response::builder().status(101).header("connection", "upgrade");
                    return switch.header("upgrade", "echo").body(Full::new(Bytes::new()));
                }
                Reply::Later(now) => {
                    now.notified().await;
                    let _ = setting.seen.send(Seen::Answered(line));
                    "later"
                }
                Reply::Unauthorized => return Response::builder().status(401).body(Full::new(Bytes::new())),
                // hyper closes the connection of a service that fails.
                Reply::Close => return Err(http::Method::from_bytes(b"").expect_err("no method").into()),
                Reply::Text(text) => text,
                _ => "other",
            };
            Ok(Response::new(Full::new(Bytes::from_static(text.as_bytes()))))
        }
    });
    let http = hyper::server::conn::http1::Builder::new();
    let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

pub(crate) fn client(config: Config) -> HttpClient {
    HttpClient::new(config, Options::default()).expect("a client")
}

pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a request")
}

pub(crate) fn post(path: &str) -> Request<Body> {
    Request::post(path).body(Body::from(b"{}".to_vec())).expect("a request")
}

pub(crate) async fn text(body: ResponseBody) -> String {
    let bytes = soon(body.collect()).await.expect("a body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Sends a request and returns the text of the response.
pub(crate) async fn exchange(client: &HttpClient, request: Request<Body>) -> String {
    text(soon(client.send(request)).await.expect("a response").into_body()).await
}

/// Opens a watch and reads the first line.
pub(crate) async fn watch(client: &HttpClient) -> ResponseBody {
    let mut body = soon(client.send(get("/watched?watch=true"))).await.expect("a watch").into_body();
    let frame = soon(body.frame()).await.expect("a frame").expect("no error");
    assert_eq!(frame.into_data().expect("data"), "begun");
    body
}

/// Returns an error and all causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Writes a file into a folder.
pub(crate) fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    path
}
