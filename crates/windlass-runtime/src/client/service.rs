//! The layer around kube's client: every request passes [`ApiService::call`].

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt;
use kube_client::{Client, client::Body};
use tokio::time::timeout;

use super::{
    Shared,
    path::{ResourcePath, query_flag},
    retry::{Repeatable, retry_after},
};
use crate::{
    error::{BoxError, Error},
    read_your_writes::{Written, is_dry_run, note_any},
};

/// A request with this extension is sent once, and waits for no lane: reflectors and leader election decide themselves.
#[derive(Clone, Copy, Debug)]
pub struct NoRetry;

/// Asks the client to answer with [`Itself`] instead of sending the request.
#[derive(Clone, Copy)]
pub(super) struct WhoAreYou;

/// The answer to [`WhoAreYou`].
#[derive(Clone)]
pub(super) struct Itself(pub(super) Arc<Shared>);

pub(super) struct ApiService {
    transport: Client,
    shared: Arc<Shared>,
}

impl ApiService {
    pub(super) fn new(transport: Client, shared: Arc<Shared>) -> Self {
        Self { transport, shared }
    }
}

impl tower::Service<Request<Body>> for ApiService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.extensions().get::<WhoAreYou>().is_some() {
            let mut response = Response::new(Body::empty());
            response.extensions_mut().insert(Itself(self.shared.clone()));
            return Box::pin(std::future::ready(Ok(response)));
        }
        let exchange = Exchange { transport: self.transport.clone(), shared: self.shared.clone() };
        // kube's client polls this future in the caller's task: the reconcile that writes is known to the record.
        Box::pin(async move { exchange.run(request).await })
    }
}

struct Exchange {
    transport: Client,
    shared: Arc<Shared>,
}

impl Exchange {
    async fn run(self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        request.headers_mut().entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let record = self.shared.writes.begin(&request);
        let writes = is_write(request.method()) && !is_dry_run(request.uri().query());
        let response = self.send_with_retries(request).await?;
        if writes && response.status().is_success() {
            note_any();
        }
        match record {
            Some(record) if response.status().is_success() => record_write(record, response).await,
            _ => Ok(response),
        }
    }

    async fn send_with_retries(&self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let shape = Shape::of(&request);
        let mut retry = 0;
        loop {
            let again = if shape.repeatable == Repeatable::Never { None } else { try_clone(&request) };
            let response = self.send_once(&shape, request).await?;
            let wait = again.as_ref().and_then(|_| {
                let asked = retry_after(response.headers());
                let fraction = self.shared.env.fraction();
                self.shared.retry.wait(shape.repeatable, response.status(), asked, retry, fraction)
            });
            match (again, wait) {
                (Some(again), Some(wait)) => {
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

    async fn send_once(&self, shape: &Shape, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let method = request.method().clone();
        // The lane is given back when the answer begins, so that a body nobody reads can never block the others.
        let lane = if shape.needs_lane { self.shared.lanes.acquire().await.ok() } else { None };
        let limit = shape.limit(self.shared.request_timeout);
        let answer = match within(limit, self.transport.send(request)).await {
            Some(answer) => answer.map_err(BoxError::from),
            None => Err(Error::timeout(limit.unwrap_or_default()).into()),
        };
        drop(lane);
        let code = answer.as_ref().map_or("<error>".into(), |response| response.status().as_str().to_owned());
        self.shared.metrics.count(method.as_str(), &code, &self.shared.host);
        answer
    }
}

/// What of a request decides how it is sent.
struct Shape {
    repeatable: Repeatable,
    needs_lane: bool,
    stream: bool,
}

impl Shape {
    fn of(request: &Request<Body>) -> Self {
        let path = ResourcePath::parse(request.uri().path());
        let query = request.uri().query();
        let subresource = path.as_ref().and_then(|path| path.subresource);
        let stream = query_flag(query, "watch")
            || query_flag(query, "follow")
            || matches!(subresource, Some("exec" | "attach" | "portforward" | "proxy"))
            || request.headers().contains_key(header::UPGRADE);
        let own_ways = request.extensions().get::<NoRetry>().is_some();
        let lease = path.as_ref().is_some_and(|path| path.group == "coordination.k8s.io");
        Self {
            repeatable: if stream || own_ways || lease {
                Repeatable::Never
            } else {
                Repeatable::of(request.method(), request.headers(), subresource)
            },
            needs_lane: !(stream || own_ways || lease),
            stream,
        }
    }

    fn limit(&self, request_timeout: Duration) -> Option<Duration> {
        (!self.stream).then_some(request_timeout)
    }
}

/// The output, or `None` when the time was over.
async fn within<F: Future>(limit: Option<Duration>, future: F) -> Option<F::Output> {
    match limit {
        Some(limit) => timeout(limit, future).await.ok(),
        None => Some(future.await),
    }
}

/// A copy to send again; `None` when the body is a stream.
fn try_clone(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// Reads a write's answer, which is one object, remembers it, and hands it on.
async fn record_write(record: Written, response: Response<Body>) -> Result<Response<Body>, BoxError> {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    record.finish(&bytes);
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// Whether a method changes something.
pub(crate) fn is_write(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE)
}
