//! The client: chooses a connection for each request.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::{body::Incoming, client::conn::TrySendError};
use hyper_util::{
    client::legacy::{Client as Http1Client, connect::capture_connection},
    rt::{TokioExecutor, TokioTimer},
};
use kube_client::{Config, client::Body};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::{
    body::ResponseBody,
    connection::Lease,
    credentials::Credentials,
    dialer::{Dialer, Http1Connector},
    error::{Error, Result},
    lane::{Lane, Stream},
    target::Target,
    traits::Traits,
    unstoppable::Unstoppable,
};

/// How often a request is sent again that the server certainly did not process.
const MOST_RESENDS: u32 = 8;

/// How long a server that refused HTTP/2 gets HTTP/1.1 only.
const HTTP1_PERIOD: Duration = Duration::from_mins(10);

/// Sends requests to one Kubernetes API server, as the [crate](crate) describes. Clones share the connections.
///
/// A request needs only a path and a query: the client adds the address of the server, the credentials and the `User-Agent`.
#[derive(Clone)]
pub struct HttpClient(Arc<Inner>);

/// Settings that kube's configuration does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The protocol of the connections. Default: HTTP/2 where the server offers HTTP/2.
    pub protocol: Protocol,
    /// True if dropping the future of a write cancels the write. Default: false; the write runs to its end.
    pub cancels_dropped_writes: bool,
}

/// The protocol of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 where the server offers HTTP/2, otherwise HTTP/1.1.
    #[default]
    Any,
    /// HTTP/1.1, for a proxy between the client and the server whose HTTP/2 does not work. Each watch is a connection of its own, and so is
    /// each request in progress.
    Http1,
}

impl Options {
    /// Sets the protocol of the connections.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Ends a write when the caller drops the future, for a caller that may lose the right to write: HTTP/2 resets the stream, and HTTP/1.1
    /// closes the connection. The server may have carried the write out already.
    pub fn cancels_dropped_writes(mut self, cancels: bool) -> Self {
        self.cancels_dropped_writes = cancels;
        self
    }
}

struct Inner {
    target: Target,
    credentials: Credentials,
    dialer: Arc<Dialer>,
    requests: Arc<Lane>,
    streams: Arc<Lane>,
    http1: Mutex<Http1Pool>,
    always_http1: bool,
    cancels_dropped_writes: bool,
    /// The time at which the server refused HTTP/2.
    refused_http2: Mutex<Option<Instant>>,
    runtime: Handle,
}

/// The HTTP/1.1 connections.
struct Http1Pool {
    client: Http1Client<Http1Connector, Body>,
    /// The generation of the certificates.
    generation: u64,
}

/// The outcome of an exchange over HTTP/2.
enum Outcome {
    Answered(Response<ResponseBody>),
    /// The server certainly did not process the request, which may be sent again.
    Unprocessed(Option<Request<Body>>, hyper::Error),
    Failed(hyper::Error),
}

impl HttpClient {
    /// Builds a client for the cluster of a configuration. Reads its certificates and runs its credential plugin; opens no connection.
    ///
    /// # Errors
    /// A certificate, a credential, a header or the address of the configuration cannot be used; or the caller runs outside of a tokio runtime.
    pub fn new(config: Config, options: Options) -> Result<Self, kube_client::Error> {
        let service = |error: Error| kube_client::Error::Service(error.into());
        let runtime =
            Handle::try_current().map_err(|error| service(Error::setup("the tokio runtime", error)))?;
        let config = Arc::new(config);
        let target = Target::new(&config).map_err(service)?;
        let url = target.url().map_err(service)?;
        let credentials = Credentials::new(&config)?;
        let dialer = Arc::new(Dialer::new(&config)?);
        let lane = || Lane::new(dialer.clone(), url.clone(), target.server(), runtime.clone());
        let (requests, streams) = (lane(), lane());
        let http1 = Mutex::new(Http1Pool::new(&dialer));
        let always_http1 = options.protocol == Protocol::Http1 || !target.is_tls();
        Ok(Self(Arc::new(Inner {
            target,
            credentials,
            dialer,
            requests,
            streams,
            http1,
            always_http1,
            cancels_dropped_writes: options.cancels_dropped_writes,
            refused_http2: Mutex::default(),
            runtime,
        })))
    }

    /// Sends a request and returns the response as soon as the headers of the response are there.
    ///
    /// # Errors
    /// See [`Error`]. The statuses of HTTP are responses, not errors.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<ResponseBody>> {
        let inner = &self.0;
        let mut traits = Traits::of(&request);
        traits.writes &= !inner.cancels_dropped_writes;
        inner.prepare(&mut request).await?;
        inner.check_files();
        let response = if traits.upgrades || inner.uses_http1() {
            inner.send_http1(request, traits).await?
        } else {
            inner.send_http2(request, traits).await?
        };
        if response.status() == StatusCode::UNAUTHORIZED {
            inner.refused();
        }
        Ok(response)
    }
}

impl Inner {
    /// Adds the address of the server and all headers.
    async fn prepare(&self, request: &mut Request<Body>) -> Result<()> {
        self.target.apply(request)?;
        if let Some(value) = self.credentials.header().await? {
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        request.headers_mut().entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        Ok(())
    }

    /// Reads certificates again in the background, once per minute.
    fn check_files(&self) {
        if self.dialer.tls().is_check_due(Instant::now()) {
            self.reload();
        }
    }

    /// Notes that the server refused the credentials: a plugin runs again, and certificates are read again.
    fn refused(&self) {
        self.credentials.refused();
        self.reload();
    }

    fn reload(&self) {
        let dialer = self.dialer.clone();
        self.runtime.spawn_blocking(move || dialer.tls().reload());
    }

    fn uses_http1(&self) -> bool {
        self.always_http1 || self.refused_http2.lock().is_some_and(|refused| refused.elapsed() < HTTP1_PERIOD)
    }

    async fn send_http2(&self, mut request: Request<Body>, traits: Traits) -> Result<Response<ResponseBody>> {
        let lane = if traits.streams { &self.streams } else { &self.requests };
        let mut resends = 0;
        loop {
            let Stream::Http2(lease) = lane.stream().await? else {
                tracing::debug!("the API server does not speak HTTP/2");
                *self.refused_http2.lock() = Some(Instant::now());
                return self.send_http1(request, traits).await;
            };
            let copy = try_clone(&request);
            match self.exchange(lease, request, traits).await? {
                Outcome::Answered(response) => return Ok(response),
                Outcome::Failed(error) => return Err(Error::exchange(error)),
                Outcome::Unprocessed(returned, error) => match returned.or(copy) {
                    Some(again) if resends < MOST_RESENDS => request = again,
                    _ => return Err(Error::exchange(error)),
                },
            }
            // A server that refuses again and again gets time.
            let wait = Duration::from_millis((1_u64 << resends) - 1);
            tokio::time::sleep(wait).await;
            resends += 1;
        }
    }

    async fn exchange(
        &self,
        mut lease: Lease,
        mut request: Request<Body>,
        traits: Traits,
    ) -> Result<Outcome> {
        *request.version_mut() = Version::HTTP_2;
        // Hyper sets the pseudo-header `:authority` from the URI.
        request.headers_mut().remove(header::HOST);
        let Some(sent) = lease.send(request) else { return Err(Error::stopped()) };
        let unanswered = lease.unanswered();
        let exchange = async move {
            let answer = sent.await;
            unanswered.answered();
            Outcome::of(answer, lease)
        };
        if traits.writes {
            Ok(Unstoppable::new(Box::pin(exchange), || true, self.runtime.clone()).await)
        } else {
            Ok(exchange.await)
        }
    }

    /// Returns the pool of HTTP/1.1 connections. Connections of old certificates get no further requests.
    fn http1(&self) -> Http1Client<Http1Connector, Body> {
        let mut http1 = self.http1.lock();
        if http1.generation != self.dialer.tls().generation() {
            *http1 = Http1Pool::new(&self.dialer);
        }
        http1.client.clone()
    }

    async fn send_http1(&self, mut request: Request<Body>, traits: Traits) -> Result<Response<ResponseBody>> {
        *request.version_mut() = Version::HTTP_11;
        let connection = traits.writes.then(|| capture_connection(&mut request));
        let exchange = self.http1().request(request);
        let answer = if let Some(connection) = connection {
            let is_sent = move || connection.connection_metadata().is_some();
            Unstoppable::new(Box::pin(exchange), is_sent, self.runtime.clone()).await
        } else {
            exchange.await
        };
        match answer {
            Ok(response) => Ok(response.map(|body| ResponseBody::new(body, None))),
            Err(error) if error.is_connect() => Err(Error::connect(self.target.server(), error)),
            Err(error) => Err(Error::exchange(error)),
        }
    }
}

impl Http1Pool {
    fn new(dialer: &Arc<Dialer>) -> Self {
        let client = Http1Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(Http1Connector(dialer.clone()));
        Self { client, generation: dialer.tls().generation() }
    }
}

impl Outcome {
    fn of(answer: Result<Response<Incoming>, TrySendError<Request<Body>>>, lease: Lease) -> Self {
        match answer {
            Ok(response) => Self::Answered(response.map(|body| ResponseBody::new(body, Some(lease)))),
            Err(mut error) => {
                if let Some(request) = error.take_message() {
                    return Self::Unprocessed(Some(request), error.into_error());
                }
                let error = error.into_error();
                if is_unprocessed(&error) { Self::Unprocessed(None, error) } else { Self::Failed(error) }
            }
        }
    }
}

/// Returns true if the server certainly did not process the request: the server refused the stream, or said with GOAWAY that the stream is
/// newer than all streams that the server processes (RFC 9113, 8.7).
fn is_unprocessed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        cause.is_remote() && (cause.is_go_away() || cause.reason() == Some(h2::Reason::REFUSED_STREAM))
    })
}

/// Returns a copy to send again, or `None` if the body is a stream.
fn try_clone(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    request.method().clone_into(copy.method_mut());
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

impl tower::Service<Request<Body>> for HttpClient {
    type Response = Response<ResponseBody>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { client.send(request).await })
    }
}
