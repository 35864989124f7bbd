//! The layer around the transport: every request passes [`ApiService::call`].

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::time::{Instant, timeout};

use super::{
    ClientState,
    body::ResponseBody,
    detached::{Detached, OnUnknownOutcome, Progress, outlives_caller},
    path::{ResourcePath, query_flag},
    retry::{Repeatable, retry_after},
    transport::Transport,
};
use crate::{
    error::{BoxError, Error},
    read_your_writes::{Written, is_write, note_any},
};

/// A request with this extension is sent once and does not count as a connection of the client: reflectors
/// and leader election have their own retries.
#[derive(Clone, Copy, Debug)]
pub struct NoRetry;

/// A request with this extension is not sent: the client answers with [`StateResponse`].
#[derive(Clone, Copy)]
pub(super) struct StateRequest;

/// The answer to [`StateRequest`].
#[derive(Clone)]
pub(super) struct StateResponse(pub(super) Arc<ClientState>);

pub(super) struct ApiService {
    transport: Transport,
    state: Arc<ClientState>,
}

impl ApiService {
    pub(super) fn new(transport: Transport, state: Arc<ClientState>) -> Self {
        Self { transport, state }
    }
}

impl tower::Service<Request<Body>> for ApiService {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.extensions().get::<StateRequest>().is_some() {
            let mut response = Response::new(ResponseBody::new(Body::empty(), None));
            response.extensions_mut().insert(StateResponse(self.state.clone()));
            return Box::pin(std::future::ready(Ok(response)));
        }
        let progress = Arc::<Progress>::default();
        let exchange = Exchange {
            transport: self.transport.clone(),
            state: self.state.clone(),
            progress: progress.clone(),
        };
        // kube's client polls this future in the caller's task, so that the write log knows the reconcile that writes.
        if outlives_caller(&request) {
            Box::pin(Detached::new(Box::pin(exchange.run_write(request)), progress))
        } else {
            Box::pin(exchange.run(request))
        }
    }
}

struct Exchange {
    transport: Transport,
    state: Arc<ClientState>,
    progress: Arc<Progress>,
}

impl Exchange {
    /// Runs the exchange, and reports an unknown outcome to the [`OnUnknownOutcome`] of the request, even if the exchange is dropped.
    async fn run_write(self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let on_unknown = request.extensions().get::<OnUnknownOutcome>().cloned();
        let mut outcome = Outcome { on_unknown, progress: self.progress.clone() };
        let answer = self.run(request).await;
        let is_unknown = answer.as_ref().map_or(true, |response| response.status().is_server_error());
        if !is_unknown {
            outcome.on_unknown = None;
        }
        answer
    }

    async fn run(self, mut request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        request.headers_mut().entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let writes = is_write(&request).await;
        let record = if writes { self.state.writes.begin(&request) } else { None };
        let again = record.as_ref().and_then(|record| record.reads_again(request.uri().path()));
        let response = self.send_with_retries(request).await?;
        if writes && response.status().is_success() {
            note_any();
        }
        match record {
            Some(record) if response.status().is_success() => self.record(record, again, response).await,
            _ => Ok(response),
        }
    }

    /// Reads the response to a write, and records it in the write log.
    async fn record(
        &self,
        record: Written,
        again: Option<String>,
        response: Response<ResponseBody>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        match again {
            Some(path) => match self.read(&path).await {
                Ok(list) => record.finish_read(&list),
                // The write itself succeeded, and a controller may lack the right to list the objects.
                Err(error) => {
                    tracing::debug!(path, %error, "reading the object after a write failed; reads see the write when the watch shows it");
                    record.finish(&bytes);
                }
            },
            None => record.finish(&bytes),
        }
        Ok(Response::from_parts(parts, ResponseBody::new(Body::from(bytes), None)))
    }

    async fn read(&self, path: &str) -> Result<Bytes, BoxError> {
        let request = Request::get(path).header(header::ACCEPT_ENCODING, "identity").body(Body::empty())?;
        let response = self.send_with_retries(request).await?;
        if !response.status().is_success() {
            return Err(format!("the server answered {}", response.status()).into());
        }
        Ok(response.into_body().collect().await?.to_bytes())
    }

    async fn send_with_retries(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let traits = RequestTraits::of(&request);
        let mut retry = 0;
        loop {
            let again = if traits.repeatable == Repeatable::Never { None } else { try_clone(&request) };
            let response = self.send_once(&traits, request).await?;
            let wait = again.as_ref().and_then(|_| {
                let asked = retry_after(response.headers());
                let fraction = self.state.env.fraction();
                self.state.retry.wait(traits.repeatable, response.status(), asked, retry, fraction)
            });
            match (again, wait) {
                (Some(again), Some(wait)) if !self.progress.is_dropped() => {
                    self.progress.set_sent(false);
                    tracing::debug!(
                        status = response.status().as_u16(),
                        ?wait,
                        retry,
                        "the API server asks to wait"
                    );
                    drop(response);
                    tokio::time::sleep(wait).await;
                    request = again;
                    retry += 1;
                }
                _ => return Ok(response),
            }
        }
    }

    async fn send_once(
        &self,
        traits: &RequestTraits,
        mut request: Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let method = request.method().clone();
        // The permit is returned when the response begins, so that an unread body never blocks other requests.
        let permit = if traits.needs_permit { self.state.connections.acquire().await.ok() } else { None };
        let limit = traits.limit(self.state.request_timeout);
        let begun = Instant::now();
        if let Some(token) = &self.state.token {
            request.headers_mut().insert(header::AUTHORIZATION, token.header(begun));
        }
        self.progress.set_sent(true);
        let answer = match within(limit, self.transport.send(request)).await {
            Some(answer) => answer,
            None => Err(Error::timeout(limit.unwrap_or_default()).into()),
        };
        drop(permit);
        if let (Some(token), Ok(answer)) = (&self.state.token, &answer)
            && answer.status() == StatusCode::UNAUTHORIZED
        {
            token.refused(begun);
        }
        let code = answer.as_ref().map_or("<error>".into(), |response| response.status().as_str().to_owned());
        self.state.metrics().count(method.as_str(), &code, &self.state.host);
        if !traits.stream {
            self.state.metrics().observe(method.as_str(), &self.state.host, begun.elapsed());
        }
        let idle_limit = traits.limit(self.state.body_timeout);
        Ok(answer?.map(|body| ResponseBody::new(body, idle_limit)))
    }
}

/// The outcome of a write, which is reported when dropped if the write was sent.
struct Outcome {
    /// `None` once the outcome is known.
    on_unknown: Option<OnUnknownOutcome>,
    progress: Arc<Progress>,
}

impl Drop for Outcome {
    fn drop(&mut self) {
        if let Some(OnUnknownOutcome(report)) = self.on_unknown.take().filter(|_| self.progress.is_sent()) {
            report();
        }
    }
}

/// The properties of a request that decide how it is sent.
struct RequestTraits {
    repeatable: Repeatable,
    needs_permit: bool,
    stream: bool,
}

impl RequestTraits {
    fn of(request: &Request<Body>) -> Self {
        let path = ResourcePath::parse(request.uri().path());
        let query = request.uri().query();
        let subresource = path.as_ref().and_then(|path| path.subresource);
        let stream = query_flag(query, "watch")
            || query_flag(query, "follow")
            || matches!(subresource, Some("exec" | "attach" | "portforward" | "proxy"))
            || request.headers().contains_key(header::UPGRADE);
        let no_retry = request.extensions().get::<NoRetry>().is_some();
        let lease = path.as_ref().is_some_and(|path| path.group == "coordination.k8s.io");
        Self {
            repeatable: if stream || no_retry || lease {
                Repeatable::Never
            } else {
                Repeatable::of(request.method(), request.headers(), subresource)
            },
            needs_permit: !(stream || no_retry || lease),
            stream,
        }
    }

    /// Watches and other streams have no time limits.
    fn limit(&self, limit: Duration) -> Option<Duration> {
        (!self.stream).then_some(limit)
    }
}

/// Returns the output, or `None` after the limit.
async fn within<F: Future>(limit: Option<Duration>, future: F) -> Option<F::Output> {
    match limit {
        Some(limit) => timeout(limit, future).await.ok(),
        None => Some(future.await),
    }
}

/// Returns a copy to send again, or `None` if the body is a stream.
fn try_clone(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}
