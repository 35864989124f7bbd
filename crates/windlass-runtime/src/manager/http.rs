//! The HTTP servers of a manager: metrics and health.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    listen::listen,
    metrics_access::MetricsAccess,
    runnable::{Group, Runnable},
};
use crate::{
    error::{BoxError, Error, Result},
    health::Health,
    metrics::{self, Metrics},
};

/// The time that requests in progress may take when the server stops.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// The number of requests that a client may have open on a connection.
const STREAMS: u32 = 32;

/// The longest TLS handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// How long an HTTP/2 connection may be idle, as controller-runtime's. HTTP/1 has the limit for the headers of the next request.
const IDLE_LIMIT: Duration = Duration::from_secs(90);

/// Answers GET requests.
pub(super) trait Endpoint: Send + Sync + 'static {
    fn get<'a>(&'a self, request: &'a Request<Incoming>) -> BoxFuture<'a, Response<Full<Bytes>>>;
}

pub(super) struct MetricsEndpoint {
    pub(super) metrics: Metrics,
    /// The check of readers; `None` for public metrics.
    pub(super) access: Option<MetricsAccess>,
}

impl Endpoint for MetricsEndpoint {
    fn get<'a>(&'a self, request: &'a Request<Incoming>) -> BoxFuture<'a, Response<Full<Bytes>>> {
        Box::pin(async move {
            // Before a review: the API server is not asked about other paths.
            if request.uri().path() != "/metrics" {
                return plain(StatusCode::NOT_FOUND, "404 page not found\n");
            }
            if let Some(access) = &self.access
                && let Some(refusal) = access.refusal(request).await
            {
                return refusal;
            }
            if accepts_open_metrics(request.headers()) {
                text(StatusCode::OK, metrics::OPEN_METRICS, self.metrics.render())
            } else {
                text(StatusCode::OK, metrics::PROMETHEUS_TEXT, self.metrics.render_prometheus())
            }
        })
    }
}

pub(super) struct HealthEndpoints(pub(super) Health);

impl Endpoint for HealthEndpoints {
    fn get<'a>(&'a self, request: &'a Request<Incoming>) -> BoxFuture<'a, Response<Full<Bytes>>> {
        Box::pin(async move {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            match self.0.answer(path, query).await {
                Some(report) if report.healthy => plain(StatusCode::OK, report.text),
                Some(report) => plain(StatusCode::INTERNAL_SERVER_ERROR, report.text),
                None => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
            }
        })
    }
}

/// Returns whether a client asks for OpenMetrics. Other clients get the text format that every reader
/// understands.
fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_open_metrics =
            parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        is_open_metrics && weight.is_none_or(|weight| weight > 0.0)
    })
}

pub(super) fn plain(code: StatusCode, body: impl Into<String>) -> Response<Full<Bytes>> {
    text(code, "text/plain; charset=utf-8", body)
}

fn text(code: StatusCode, content_type: &'static str, body: impl Into<String>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.into())));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

/// Listens at once, because an address in use must fail the start. Returns a runnable that serves, over HTTPS
/// if there is a TLS configuration.
pub(super) fn serve(
    name: &str,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    endpoint: impl Endpoint,
) -> Result<Runnable> {
    let listener =
        listen(address).map_err(|e| Error::setup(format!("cannot serve {name} on {address}: {e}")))?;
    let endpoint: Arc<dyn Endpoint> = Arc::new(endpoint);
    tracing::info!(address = %listener.local_addr()?, secure = tls.is_some(), "serving {name}");
    let tls = tls.map(TlsAcceptor::from);
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
            tasks.spawn(serve_connection(stream, tls.clone(), endpoint.clone(), connections.watcher()));
        }
        let _ = timeout(CLOSE_LIMIT, connections.shutdown()).await;
        Ok::<(), BoxError>(())
    };
    Ok(Runnable::new(name, run).group(Group::Http))
}

/// Serves a connection.
async fn serve_connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    endpoint: Arc<dyn Endpoint>,
    watcher: Watcher,
) {
    match tls {
        None => serve_requests(stream, false, endpoint, watcher).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                serve_requests(stream, is_http2, endpoint, watcher).await;
            }
        }
    }
}

/// Serves requests until the connection ends, or is idle for too long.
async fn serve_requests<S>(stream: S, is_http2: bool, endpoint: Arc<dyn Endpoint>, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let in_flight = watch::Sender::new(0_usize);
    let idle = idle(in_flight.subscribe());
    let service = service_fn(move |request| {
        let busy = Busy::begin(&in_flight);
        let answer = answer(endpoint.clone(), request);
        async move {
            let _busy = busy;
            answer.await
        }
    });
    if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            _ = watcher.watch(connection) => {}
            () = idle => {}
        }
        return;
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(32))
        .serve_connection(TokioIo::new(stream), service);
    // A connection that a client breaks is no failure.
    let _ = watcher.watch(connection).await;
}

/// Waits until there was no request for a while.
async fn idle(mut in_flight: watch::Receiver<usize>) {
    loop {
        let limit = if *in_flight.borrow_and_update() > 0 { Duration::MAX } else { IDLE_LIMIT };
        let Ok(Ok(())) = timeout(limit, in_flight.changed()).await else { return };
    }
}

/// A request in flight.
struct Busy(watch::Sender<usize>);

impl Busy {
    fn begin(in_flight: &watch::Sender<usize>) -> Self {
        in_flight.send_modify(|count| *count += 1);
        Self(in_flight.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

async fn answer(
    endpoint: Arc<dyn Endpoint>,
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n"));
    }
    Ok(endpoint.get(&request).await)
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_idle_http_2_connection_ends_after_90_seconds() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let connections = GracefulShutdown::new();
        let endpoint = Arc::new(HealthEndpoints(Health::new()));
        let served = tokio::spawn(serve_requests(server, true, endpoint, connections.watcher()));
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client));
        let (mut sender, connection) = handshake.await.expect("HTTP/2");
        tokio::spawn(connection);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let request = Request::get("http://localhost/healthz").body(String::new()).expect("a request");
        assert_eq!(sender.send_request(request).await.expect("a reply").status(), StatusCode::OK);
        let answered = Instant::now();
        timeout(Duration::from_hours(1), served).await.expect("the connection ends").expect("no panic");
        assert_eq!(answered.elapsed().as_secs(), IDLE_LIMIT.as_secs());
    }
}
