//! A front of a registry that adds TLS, passwords and faults. The registry behind the front is the one of this crate.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use windlass_image::{RegistryServer, Store};

use crate::sample::Sandbox;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The reaction of the front to a request.
pub(crate) enum Act {
    /// Passes the request to the registry.
    Pass,
    /// Answers in place of the registry, with the status, headers and a body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Passes a number of bytes of the request, and closes both connections.
    CutRequest(usize),
    /// Passes a number of bytes of the reply, and closes the connection.
    CutReply(usize),
    /// Passes a number of bytes of the reply, as if they were all.
    ShortReply(usize),
    /// Passes the reply with another last byte.
    Corrupt,
    /// Passes the reply without a header.
    Without(&'static str),
}

/// A registry behind a front.
pub(crate) struct Front {
    /// The host and the port of the front.
    pub(crate) address: String,
    /// The store of the registry.
    pub(crate) store: Store,
    /// The certificate of the front's CA, with TLS.
    pub(crate) ca_file: PathBuf,
}

impl Front {
    /// Starts a registry with a store of its own, and a front with plain HTTP.
    pub(crate) async fn plain(sandbox: &Sandbox, act: impl Fn(&Head) -> Act + Send + Sync + 'static) -> Self {
        Self::start(sandbox, None, act).await
    }

    /// Starts a registry with a store of its own, and a front with a certificate of its own CA.
    pub(crate) async fn with_tls(
        sandbox: &Sandbox,
        act: impl Fn(&Head) -> Act + Send + Sync + 'static,
    ) -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(ca_file(sandbox), certified.cert.pem()).unwrap();
        let key = certified.signing_key.serialize_der().try_into().unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        Self::start(sandbox, Some(TlsAcceptor::from(Arc::new(config))), act).await
    }

    async fn start(
        sandbox: &Sandbox,
        tls: Option<TlsAcceptor>,
        act: impl Fn(&Head) -> Act + Send + Sync + 'static,
    ) -> Self {
        let store = Store::open(sandbox.folder.path().join("registry")).unwrap();
        let server = RegistryServer::bind(store.clone(), ([127, 0, 0, 1], 0).into()).await.unwrap();
        let behind = server.address().to_string();
        tokio::spawn(server.run(std::future::pending()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        let act: Arc<dyn Fn(&Head) -> Act + Send + Sync> = Arc::new(act);
        let passing = Arc::new(Passing { behind, client, act });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, tls.clone(), Arc::clone(&passing)));
            }
        });
        Self { address: format!("localhost:{port}"), store, ca_file: ca_file(sandbox) }
    }
}

fn ca_file(sandbox: &Sandbox) -> PathBuf {
    sandbox.folder.path().join("ca.pem")
}

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, passing: Arc<Passing>) {
    let service = service_fn(move |request| {
        let passing = Arc::clone(&passing);
        async move { passing.answer(request).await }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    // A connection that is cut ends with an error, which the client sees.
    let _ = match tls {
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => builder.serve_connection(TokioIo::new(stream), service).await,
            Err(_) => return,
        },
        None => builder.serve_connection(TokioIo::new(stream), service).await,
    };
}

/// The head of a request.
pub(crate) struct Head {
    /// The method, a space and the path: `GET /v2/`.
    pub(crate) line: String,
    pub(crate) query: String,
    pub(crate) host: String,
    pub(crate) authorization: Option<String>,
    /// The size of the body, in bytes.
    pub(crate) size: usize,
}

impl Head {
    fn of(request: &Request<Incoming>) -> Self {
        let header =
            |name| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            line: format!("{} {}", request.method(), request.uri().path()),
            query: request.uri().query().unwrap_or_default().to_owned(),
            host: header(header::HOST).unwrap_or_default(),
            authorization: header(header::AUTHORIZATION),
            size: header(header::CONTENT_LENGTH).and_then(|size| size.parse().ok()).unwrap_or_default(),
        }
    }

    /// Returns whether the request gets a blob.
    pub(crate) fn gets_blob(&self) -> bool {
        self.line.starts_with("GET ") && self.line.contains("/blobs/sha256:")
    }
}

/// Passes requests to the registry.
struct Passing {
    behind: String,
    client: Client<HttpConnector, Body>,
    act: Arc<dyn Fn(&Head) -> Act + Send + Sync>,
}

impl Passing {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, io::Error> {
        match (self.act)(&Head::of(&request)) {
            Act::Pass => self.pass(request.map(whole)).await,
            Act::Answer(status, headers, text) => Ok(answered(status, headers, text)),
            Act::CutRequest(size) => {
                self.pass(request.map(|body| cut(whole(body), size))).await?;
                Err(io::Error::other("the request was cut"))
            }
            Act::CutReply(size) => Ok(self.pass(request.map(whole)).await?.map(|body| cut(body, size))),
            Act::ShortReply(size) => self.changed(request, |bytes| bytes.slice(..size)).await,
            Act::Corrupt => self.changed(request, corrupt).await,
            Act::Without(name) => {
                let mut reply = self.pass(request.map(whole)).await?;
                reply.headers_mut().remove(name);
                Ok(reply)
            }
        }
    }

    /// Passes a request whose host stays: the registry names its images by the host.
    async fn pass(&self, mut request: Request<Body>) -> Result<Response<Body>, io::Error> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() =
            format!("http://{}{path}", self.behind).parse::<Uri>().map_err(io::Error::other)?;
        *request.version_mut() = http::Version::HTTP_11;
        self.client.request(request).await.map(|reply| reply.map(whole)).map_err(io::Error::other)
    }

    async fn changed(
        &self,
        request: Request<Incoming>,
        change: impl Fn(Bytes) -> Bytes,
    ) -> Result<Response<Body>, io::Error> {
        let (mut head, body) = self.pass(request.map(whole)).await?.into_parts();
        let bytes = change(body.collect().await?.to_bytes());
        head.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
        Ok(Response::from_parts(head, full(bytes)))
    }
}

fn answered(status: u16, headers: Vec<(&'static str, String)>, text: String) -> Response<Body> {
    let mut reply = Response::new(full(text.into()));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        reply.headers_mut().append(name, value.parse().unwrap());
    }
    reply
}

fn corrupt(bytes: Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes.into()
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn whole(body: Incoming) -> Body {
    body.map_err(io::Error::other).boxed_unsync()
}

/// Returns the first bytes of a body, and an error as the rest.
fn cut(body: Body, size: usize) -> Body {
    let mut left = size;
    let frames = body.into_data_stream().map(move |data| {
        let data = data.map_err(io::Error::other)?;
        let kept = data.slice(..left.min(data.len()));
        left -= kept.len();
        if kept.is_empty() { Err(io::Error::other("cut")) } else { Ok(Frame::data(kept)) }
    });
    // The connection is closed even if the body is not longer than `size`.
    let end = stream::iter([Err(io::Error::other("cut"))]);
    StreamBody::new(frames.chain(end)).boxed_unsync()
}
