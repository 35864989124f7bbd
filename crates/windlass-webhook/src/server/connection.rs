//! One connection: TLS, HTTP/1.1 or HTTP/2, idle time.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::Watcher},
};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::http::{Limits, answer};
use crate::webhooks::Dispatcher;

/// The longest TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The longest wait for the headers of a request, as controller-runtime's.
const HEADERS: Duration = Duration::from_secs(32);

/// The most bytes of headers, as controller-runtime's.
const HEADER_BYTES: usize = 1 << 20;

/// How long a connection may be idle, as controller-runtime's.
const IDLE: Duration = Duration::from_secs(90);

/// The largest number of concurrent requests of an HTTP/2 connection, as in Go.
const STREAMS: u32 = 250;

/// Serves a connection until the connection ends, the connection is idle for too long, or the server stops.
pub(super) async fn serve_connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    dispatcher: Dispatcher,
    watcher: Watcher,
    limits: Arc<Limits>,
) {
    let _ = stream.set_nodelay(true);
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake of a webhook client failed"),
        Err(_) => return,
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let activity = Arc::new(Activity::default());
    let service = service_fn({
        let activity = activity.clone();
        move |request| {
            let (dispatcher, limits, busy) = (dispatcher.clone(), limits.clone(), activity.begin());
            async move {
                let reply = answer(request, &dispatcher, &limits).await;
                drop(busy);
                Ok::<_, Infallible>(reply)
            }
        }
    });
    let builder = builder(is_http2);
    let connection = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned());
    tokio::select! {
        biased;
        result = connection => if let Err(error) = result {
            tracing::debug!(error, "a connection of a webhook client ended");
        },
        () = activity.idle() => {}
    }
}

fn builder(is_http2: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(HEADER_BYTES)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES as u32);
    if is_http2 { builder.http2_only() } else { builder.http1_only() }
}

/// The requests of a connection.
#[derive(Default)]
struct Activity {
    in_flight: AtomicUsize,
    /// The number of requests that have begun or ended.
    changes: AtomicU64,
}

impl Activity {
    fn begin(self: &Arc<Self>) -> Busy {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        self.changes.fetch_add(1, Ordering::AcqRel);
        Busy(self.clone())
    }

    /// Waits until there was no request for a while.
    async fn idle(&self) {
        loop {
            let before = self.changes.load(Ordering::Acquire);
            sleep(IDLE).await;
            if self.in_flight.load(Ordering::Acquire) == 0 && self.changes.load(Ordering::Acquire) == before {
                return;
            }
        }
    }
}

/// A request in flight.
struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
