//! The client: chooses a connection for each request.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use h2::client::ResponseFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version, header};
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
    message::Message,
    outcome::Outcome,
    silence::Answers,
    target::Target,
    traits::Traits,
    unstoppable::Unstoppable,
};

/// How often a request is sent again that the server certainly did not process.
const MOST_RESENDS: u32 = 8;

/// How long a server that refused HTTP/2 gets HTTP/1.1 only.
const HTTP1_PERIOD: Duration = Duration::from_mins(10);

/// Headers of HTTP/1.1 that HTTP/2 has not. The pseudo-header `:authority` replaces `Host`.
const CONNECTION_HEADERS: [HeaderName; 4] =
    [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE];

/// Room for the headers of a message, without a second allocation.
const HEADERS: usize = 8;

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
    /// A network may swallow everything on the idle connections, and each of them would take the time of a request. A silent pool is
    /// therefore replaced as a whole.
    answers: Arc<Answers>,
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
        inner.target.apply(&mut request)?;
        inner.complete(request.headers_mut()).await?;
        inner.check_files();
        let response = if traits.upgrades || inner.uses_http1() {
            inner.send_http1(request, traits).await?
        } else {
            let (mut head, body) = request.into_parts();
            for name in &CONNECTION_HEADERS {
                head.headers.remove(name);
            }
            let body = body.collect_bytes().await.map_err(Error::exchange)?;
            let head = Request::from_parts(head, ());
            inner.send_http2(traits, body, || Ok(head.clone())).await?
        };
        inner.look_at(&response);
        Ok(response)
    }

    /// Sends a message as a request, and returns the response as soon as the headers of the response are there. `authorization` replaces the
    /// credentials of the configuration.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_message(
        &self,
        message: &Message,
        authorization: Option<HeaderValue>,
    ) -> Result<Response<ResponseBody>> {
        let inner = &self.0;
        let credentials = match authorization {
            Some(authorization) => Some(authorization),
            None => inner.credentials.header().await?,
        };
        inner.check_files();
        let mut traits = Traits::new(&message.method, &message.path);
        traits.writes &= !inner.cancels_dropped_writes;
        let head = || inner.head_of(message, credentials.as_ref());
        let response = if inner.uses_http1() {
            let request = head()?.map(|()| Body::from(message.body.clone()));
            Box::pin(inner.send_http1(request, traits)).await?
        } else {
            inner.send_http2(traits, message.body.clone(), head).await?
        };
        inner.look_at(&response);
        Ok(response)
    }
}

impl Inner {
    /// Adds the credentials, and the encoding of responses.
    async fn complete(&self, headers: &mut HeaderMap) -> Result<()> {
        if let Some(value) = self.credentials.header().await? {
            headers.insert(header::AUTHORIZATION, value);
        }
        headers.entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        Ok(())
    }

    /// Returns the method, the address and the headers of a message.
    fn head_of(&self, message: &Message, credentials: Option<&HeaderValue>) -> Result<Request<()>> {
        let mut headers = HeaderMap::with_capacity(HEADERS);
        self.target.add_headers(&mut headers);
        headers.insert(header::ACCEPT, message.accept.clone());
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(content_type) = &message.content_type {
            headers.insert(header::CONTENT_TYPE, content_type.clone());
        }
        if let Some(credentials) = credentials {
            headers.insert(header::AUTHORIZATION, credentials.clone());
        }
        let mut head = Request::new(());
        *head.method_mut() = message.method.clone();
        *head.uri_mut() = self.target.resolve(message.path.clone())?;
        *head.headers_mut() = headers;
        Ok(head)
    }

    /// Notes a response that refuses the credentials.
    fn look_at(&self, response: &Response<ResponseBody>) {
        if response.status() == StatusCode::UNAUTHORIZED {
            self.refused();
        }
    }

    /// Reads certificates again in the background, once per minute.
    fn check_files(&self) {
        if self.dialer.tls().is_check_due(tokio::time::Instant::now()) {
            self.reload();
        }
    }

    /// Notes that the server refused the credentials: a plugin runs again, and certificates are read again.
    fn refused(&self) {
        self.credentials.refused();
        self.reload();
    }

    fn reload(&self) {
        let tls = self.dialer.tls().clone();
        self.runtime.spawn(async move { tls.reload().await });
    }

    fn uses_http1(&self) -> bool {
        self.always_http1 || self.refused_http2.lock().is_some_and(|refused| refused.elapsed() < HTTP1_PERIOD)
    }

    /// `head` makes the method, the address and the headers of the request, again for each attempt. Rare steps are boxed: callers keep the
    /// future of each request.
    async fn send_http2(
        &self,
        traits: Traits,
        body: Bytes,
        head: impl Fn() -> Result<Request<()>>,
    ) -> Result<Response<ResponseBody>> {
        let lane = if traits.streams { &self.streams } else { &self.requests };
        let mut resends = 0;
        loop {
            let Stream::Http2(mut lease) = lane.stream().await? else {
                tracing::debug!("the API server does not speak HTTP/2");
                *self.refused_http2.lock() = Some(Instant::now());
                return Box::pin(self.send_http1(head()?.map(|()| Body::from(body)), traits)).await;
            };
            // No wait has the head in the future.
            let outcome = match lease.ready().await {
                Ok(()) => match lease.send(with_length(head()?, body.len()), body.clone()) {
                    Ok(response) => self.answer(lease, response, traits).await,
                    Err(error) => Outcome::Unprocessed(error),
                },
                Err(error) => Outcome::Unprocessed(error),
            };
            match outcome {
                Outcome::Answered(response) => return Ok(response),
                Outcome::Unprocessed(_) if resends < MOST_RESENDS => {}
                Outcome::Unprocessed(error) | Outcome::Failed(error) => return Err(Error::exchange(error)),
            }
            // A server that refuses again and again gets time.
            let wait = Duration::from_millis((1_u64 << resends) - 1);
            tokio::time::sleep(wait).await;
            resends += 1;
        }
    }

    /// Waits for the answer to a request.
    async fn answer(&self, lease: Lease, response: ResponseFuture, traits: Traits) -> Outcome {
        if traits.writes {
            let (connection, sent_at) = (lease.connection().clone(), tokio::time::Instant::now());
            // Called if the caller leaves: a task waits for the answer.
            let is_sent = move || {
                connection.answers().gave_up(sent_at);
                true
            };
            let exchange = Box::pin(exchange(lease, response));
            return Unstoppable::new(exchange, is_sent, self.runtime.clone()).await;
        }
        exchange(lease, response).await
    }

    /// Returns the pool of HTTP/1.1 connections, and the answers of the pool. Connections of old certificates, and connections that have
    /// stopped to answer, get no further requests.
    fn http1(&self) -> (Http1Client<Http1Connector, Body>, Arc<Answers>) {
        let mut http1 = self.http1.lock();
        if http1.generation != self.dialer.tls().generation() || http1.answers.are_missing() {
            *http1 = Http1Pool::new(&self.dialer);
        }
        (http1.client.clone(), http1.answers.clone())
    }

    async fn send_http1(&self, mut request: Request<Body>, traits: Traits) -> Result<Response<ResponseBody>> {
        *request.version_mut() = Version::HTTP_11;
        let connection = traits.writes.then(|| capture_connection(&mut request));
        let (client, answers) = self.http1();
        let exchange = client.request(request);
        let unanswered = answers.wait();
        let answer = if let Some(connection) = connection {
            let is_sent = move || connection.connection_metadata().is_some();
            Unstoppable::new(Box::pin(exchange), is_sent, self.runtime.clone()).await
        } else {
            exchange.await
        };
        match answer {
            Ok(response) => {
                unanswered.answered();
                Ok(response.map(ResponseBody::http1))
            }
            Err(error) if error.is_connect() => Err(Error::connect(self.target.server(), error)),
            Err(error) => Err(Error::exchange(error)),
        }
    }
}

/// Waits for the answer on a connection.
#[allow(clippy::manual_async_fn, reason = "an `async fn` keeps the arguments twice")]
fn exchange(lease: Lease, response: ResponseFuture) -> impl Future<Output = Outcome> + Send {
    async move {
        let unanswered = lease.connection().answers().wait();
        let answer = response.await;
        if answer.as_ref().map_or_else(h2::Error::is_remote, |_| true) {
            unanswered.answered();
        } else {
            drop(unanswered);
        }
        Outcome::of(answer, lease)
    }
}

/// Adds the length of the body to the head of a request.
fn with_length(mut head: Request<()>, length: usize) -> Request<()> {
    *head.version_mut() = Version::HTTP_2;
    if length > 0 {
        head.headers_mut().insert(header::CONTENT_LENGTH, decimal(length));
    }
    head
}

/// Returns a number as the value of a header, with a single allocation.
fn decimal(number: usize) -> HeaderValue {
    let mut digits = [0; 20];
    let mut begin = digits.len();
    let mut rest = number;
    loop {
        begin -= 1;
        digits[begin] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    // Digits are always valid.
    HeaderValue::from_bytes(&digits[begin..]).unwrap_or_else(|_| HeaderValue::from(number))
}

impl Http1Pool {
    fn new(dialer: &Arc<Dialer>) -> Self {
        let client = Http1Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(Http1Connector(dialer.clone()));
        Self { client, generation: dialer.tls().generation(), answers: Arc::new(Answers::new()) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_decimal() {
        for number in [0, 7, 10, 1024, usize::MAX] {
            assert_eq!(decimal(number), number.to_string());
        }
    }
}
