//! The common parts of the tests: a server, requests, replies and watches.

mod host;
mod kubeconfig;
mod reply;
mod transport;
mod watch;
mod webhook;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, SEC_WEBSOCKET_PROTOCOL};
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::{WebSocketStream, tungstenite};
use windlass_apiserver::{Listen, Server};
use windlass_patience::stretched;

pub(crate) use host::Host;
pub(crate) use reply::{NOT_ENFORCED, Reply, plain};
use transport::{Credentials, Transport};
pub(crate) use watch::Watch;
pub(crate) use webhook::{Answer, Webhook, rule};

pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// Returns how long anything may take that a server does in its own time.
pub(crate) fn deadline() -> Duration {
    stretched(Duration::from_secs(15))
}

/// Texts as lines, to compare all that a test has seen at once.
pub(crate) fn lines(texts: &[String]) -> String {
    texts.iter().flat_map(|text| [text.as_str(), "\n"]).collect()
}

/// A test's view of a server: a separate embedded server, or the real server of `WINDLASS_TEST_KUBECONFIG`.
///
/// Dropping the value deletes the objects of [`Api::namespace`] and [`Api::crd`].
pub(crate) struct Api {
    transport: Arc<Transport>,
    credentials: Credentials,
    /// The headers of every request: whom it impersonates.
    headers: Vec<(&'static str, String)>,
    /// In every name that this test makes up: tests share the real server. Replies show it as `ID`.
    pub(crate) id: String,
    garbage: Mutex<Vec<String>>,
}

impl Api {
    pub(crate) fn start() -> Self {
        Self::new(Transport::open(false))
    }

    /// The same, over TLS always: an embedded server listens on loopback, and its kubeconfig is used.
    pub(crate) fn start_over_tls() -> Self {
        Self::new(Transport::open(true))
    }

    /// An embedded server that the test has built, in process, even if a real one is to be tested.
    pub(crate) fn embedded(server: &Server) -> Self {
        Self::new(Transport::embedded(server.clone(), false))
    }

    /// The same, over a listener with these settings.
    pub(crate) async fn listening(server: &Server, options: Listen) -> Self {
        Self::new(Transport::listening(server.clone(), options).await)
    }

    fn new(transport: Transport) -> Self {
        Api {
            transport: Arc::new(transport),
            credentials: Credentials::Admin,
            headers: Vec::new(),
            id: unique_id(),
            garbage: Mutex::default(),
        }
    }

    /// The same server without credentials, over TLS.
    pub(crate) fn anonymous(&self) -> Self {
        self.with(Credentials::None)
    }

    /// The same server with a bearer token, over TLS.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        self.with(Credentials::Token(token.to_owned()))
    }

    fn with(&self, credentials: Credentials) -> Self {
        Api {
            transport: Arc::clone(&self.transport),
            credentials,
            headers: Vec::new(),
            id: self.id.clone(),
            garbage: Mutex::default(),
        }
    }

    /// Returns the same server as another user. This user impersonates the other user.
    pub(crate) fn impersonating(&self, user: &str, groups: &[&str]) -> Self {
        let mut headers = vec![("impersonate-user", user.to_owned())];
        headers.extend(groups.iter().map(|group| ("impersonate-group", (*group).to_owned())));
        let mut other = self.with(self.credentials.clone());
        other.headers = headers;
        other
    }

    /// The same server as a service account of `namespace` that may do nothing, over TLS.
    pub(crate) async fn service_account(&self, namespace: &str, name: &str) -> Self {
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        // A real cluster may make the account of a namespace first.
        let created = self.post(&accounts, json!({"metadata": {"name": name}})).await;
        assert!([201, 409].contains(&created.code), "{created}");
        let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}});
        let token = self.post(&format!("{accounts}/{name}/token"), request).await.is(201);
        self.with_token(&token.text_at("/status/token"))
    }

    /// A connection over TLS, to write HTTP/1.1 by hand. It has no client certificate unless this is the administrator.
    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        let tcp = self.transport.tcp().await;
        tcp.connect(&self.credentials, tcp.host(), "http/1.1").await.expect("a connection")
    }

    /// Returns the header of the administrator's token, for requests by hand; empty for an administrator with a certificate.
    pub(crate) async fn authorization(&self) -> String {
        self.transport.tcp().await.token_header()
    }

    /// Asks to go on over WebSocket, always over TLS. Any reply but 101 is an error.
    pub(crate) async fn websocket(
        &self,
        path: &str,
    ) -> Result<WebSocketStream<TlsStream<TcpStream>>, tungstenite::Error> {
        self.websocket_by(path, &[]).await
    }

    /// As [`websocket`](Self::websocket), with a list of subprotocols.
    pub(crate) async fn websocket_with(
        &self,
        path: &str,
        protocols: &str,
    ) -> Result<WebSocketStream<TlsStream<TcpStream>>, tungstenite::Error> {
        let headers = [(SEC_WEBSOCKET_PROTOCOL, protocols)];
        self.websocket_by(path, if protocols.is_empty() { &[] } else { &headers }).await
    }

    /// As [`websocket`](Self::websocket), with an `Accept` header.
    pub(crate) async fn websocket_accepting(
        &self,
        path: &str,
        accept: &str,
    ) -> Result<WebSocketStream<TlsStream<TcpStream>>, tungstenite::Error> {
        self.websocket_by(path, &[(ACCEPT, accept)]).await
    }

    async fn websocket_by(
        &self,
        path: &str,
        headers: &[(HeaderName, &str)],
    ) -> Result<WebSocketStream<TlsStream<TcpStream>>, tungstenite::Error> {
        self.transport.tcp().await.websocket(path, headers, &self.credentials).await
    }

    /// Returns whether the server's certificate is valid for `host`.
    pub(crate) async fn is_certified_for(&self, host: &str) -> bool {
        self.transport.tcp().await.connect(&self.credentials, host, "http/1.1").await.is_ok()
    }

    /// Returns whether this is a server that other tests use at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        self.transport.is_shared()
    }

    /// Makes an embedded server forget the history; a real server forgets after some minutes.
    pub(crate) fn compact(&self) {
        self.transport.compact();
    }

    /// The test's namespace, freshly created.
    pub(crate) async fn namespace(&self) -> String {
        self.namespace_named(&format!("ns-{}", self.id)).await
    }

    pub(crate) async fn namespace_named(&self, name: &str) -> String {
        self.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await.is(201);
        self.discard(format!("/api/v1/namespaces/{name}"));
        name.to_owned()
    }

    /// Deletes a cluster-wide object when the test is over, however it ends.
    pub(crate) fn discard(&self, path: String) {
        self.garbage.lock().unwrap().push(path);
    }

    /// Creates a CustomResourceDefinition and waits until its resources are served.
    pub(crate) async fn crd(&self, definition: Value) -> Value {
        let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await.is(201);
        self.discard(path.clone());
        let spec = self.get(&path).await.is(200).json()["spec"].clone();
        for version in spec["versions"].as_array().unwrap().iter().filter(|version| version["served"] == true)
        {
            let (group, version) = (spec["group"].as_str().unwrap(), version["name"].as_str().unwrap());
            let served = format!("/apis/{group}/{version}/{}", spec["names"]["plural"].as_str().unwrap());
            self.eventually(&served, |reply| reply.code == 200).await;
        }
        // The real server may serve the resources first, and then set the condition.
        let established = |reply: &Reply| {
            let conditions = reply.json()["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions
                .iter()
                .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
        };
        self.eventually(&path, established).await.json()
    }

    /// Repeats a GET until the reply is as wanted.
    pub(crate) async fn eventually(&self, path: &str, wanted: impl Fn(&Reply) -> bool) -> Reply {
        let start = Instant::now();
        loop {
            let reply = self.get(path).await;
            if wanted(&reply) {
                return reply;
            }
            assert!(start.elapsed() < deadline(), "GET {path} does not become as wanted: {reply}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.request(Method::GET, path).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.request(Method::POST, path).json(&body).send().await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.request(Method::PUT, path).json(&body).send().await
    }

    pub(crate) async fn patch(&self, path: &str, media_type: &str, body: Value) -> Reply {
        self.request(Method::PATCH, path).body(media_type, body.to_string()).send().await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.request(Method::DELETE, path).send().await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: Value) -> Reply {
        self.request(Method::DELETE, path).json(&options).send().await
    }

    /// Opens a watch: the path has its query, but for `watch=true`.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let joint = if path.contains('?') { '&' } else { '?' };
        self.request(Method::GET, &format!("{path}{joint}watch=true")).stream().await
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Request<'_> {
        let builder =
            http::Request::builder().method(method).uri(path).header(http::header::USER_AGENT, "api-test/1");
        let builder =
            self.headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, value));
        Request { api: self, builder, body: Bytes::new() }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let garbage = std::mem::take(self.garbage.get_mut().unwrap());
        if !self.is_shared() || garbage.is_empty() {
            return;
        }
        let transport = self.transport.clone();
        let cleaner = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                for path in garbage.into_iter().rev() {
                    let request = http::Request::delete(path).body(Bytes::new()).unwrap();
                    transport.send(request, &Credentials::Admin).await;
                }
            });
        });
        // A failed clean-up must not hide why the test failed.
        let _ = cleaner.join();
    }
}

/// A request under construction.
pub(crate) struct Request<'a> {
    api: &'a Api,
    builder: http::request::Builder,
    body: Bytes,
}

impl Request<'_> {
    pub(crate) fn header(mut self, name: impl AsRef<str>, value: &str) -> Self {
        self.builder = self.builder.header(name.as_ref(), value);
        self
    }

    pub(crate) fn accept(self, value: &str) -> Self {
        self.header(ACCEPT, value)
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    pub(crate) fn body(mut self, media_type: &str, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header(CONTENT_TYPE, media_type)
    }

    pub(crate) async fn send(self) -> Reply {
        let id = self.api.id.clone();
        let request = self.builder.body(self.body).expect("a well-formed request");
        let response = self.api.transport.send(request, &self.api.credentials).await;
        Reply::read(response, id).await
    }

    /// Sends the body without the end, over HTTP/2.
    pub(crate) async fn send_unfinished(self) -> Reply {
        let id = self.api.id.clone();
        let first = futures::stream::iter([Ok(http_body::Frame::data(self.body))]);
        let body = StreamBody::new(first.chain(futures::stream::pending()));
        let request = self.builder.body(body.boxed_unsync()).expect("a well-formed request");
        let tcp = self.api.transport.tcp().await;
        let response = tokio::time::timeout(deadline(), tcp.send_stream(request, &self.api.credentials));
        let response = response.await.expect("a reply in time").expect("a reply");
        Reply::read(response, id).await
    }

    pub(crate) async fn stream(self) -> Watch {
        let id = self.api.id.clone();
        let request = self.builder.body(self.body).expect("a well-formed request");
        let response = self.api.transport.send(request, &self.api.credentials).await;
        let (head, body) = response.into_parts();
        Watch::new(head.status.as_u16(), body, id)
    }
}

/// Ten lower-case letters and digits, different for every test of every run.
fn unique_id() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let mut seed = nanos
        ^ (u64::from(std::process::id()) << 40)
        ^ (u64::from(COUNTER.fetch_add(1, Ordering::Relaxed)) << 20);
    let mut id = String::from("q");
    for _ in 0..9 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        id.push(char::from(b"bcdfghjklmnpqrstvwxz2456789"[(seed >> 33) as usize % 27]));
    }
    id
}
