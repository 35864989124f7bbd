//! The small HTTP servers of a manager: metrics and health.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{task::JoinSet, time::timeout};

use super::{
    listen::listen,
    runnable::{Group, Runnable},
};
use crate::{
    error::{BoxError, Error, Result},
    health::Health,
    metrics::{self, Metrics},
};

/// The time that requests in progress may take when the server stops.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Answers GET requests.
pub(super) trait Endpoint: Send + Sync + 'static {
    fn get<'a>(&'a self, path: &'a str, query: &'a str) -> BoxFuture<'a, Response<Full<Bytes>>>;
}

pub(super) struct MetricsEndpoint(pub(super) Metrics);

impl Endpoint for MetricsEndpoint {
    fn get<'a>(&'a self, path: &'a str, _: &'a str) -> BoxFuture<'a, Response<Full<Bytes>>> {
        Box::pin(async move {
            match path {
                "/metrics" => text(StatusCode::OK, metrics::CONTENT_TYPE, self.0.render()),
                _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
            }
        })
    }
}

pub(super) struct HealthEndpoints(pub(super) Health);

impl Endpoint for HealthEndpoints {
    fn get<'a>(&'a self, path: &'a str, query: &'a str) -> BoxFuture<'a, Response<Full<Bytes>>> {
        Box::pin(async move {
            match self.0.answer(path, query).await {
                Some(verdict) if verdict.well => plain(StatusCode::OK, verdict.text),
                Some(verdict) => plain(StatusCode::INTERNAL_SERVER_ERROR, verdict.text),
                None => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
            }
        })
    }
}

fn plain(code: StatusCode, body: impl Into<String>) -> Response<Full<Bytes>> {
    text(code, "text/plain; charset=utf-8", body)
}

fn text(code: StatusCode, content_type: &'static str, body: impl Into<String>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.into())));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

/// Listens at once, so that an address in use fails the start, and returns a runnable that serves.
pub(super) fn serve(name: &str, address: SocketAddr, endpoint: impl Endpoint) -> Result<Runnable> {
    let listener =
        listen(address).map_err(|e| Error::setup(format!("cannot serve {name} on {address}: {e}")))?;
    let endpoint: Arc<dyn Endpoint> = Arc::new(endpoint);
    tracing::info!(address = %listener.local_addr()?, "serving {name}");
    let run = move |cx: super::RunContext| async move {
        let connections = GracefulShutdown::new();
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = cx.shutdown.requested() => break,
                Some(_) = tasks.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Most likely out of file descriptors: wait until some are closed.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let endpoint = endpoint.clone();
            let service = service_fn(move |request| answer(endpoint.clone(), request));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(32))
                .serve_connection(TokioIo::new(stream), service);
            tasks.spawn(connections.watch(connection));
        }
        let _ = timeout(CLOSE_LIMIT, connections.shutdown()).await;
        Ok::<(), BoxError>(())
    };
    Ok(Runnable::new(name, run).group(Group::Http))
}

async fn answer(
    endpoint: Arc<dyn Endpoint>,
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n"));
    }
    let uri = request.uri();
    Ok(endpoint.get(uri.path(), uri.query().unwrap_or_default()).await)
}
