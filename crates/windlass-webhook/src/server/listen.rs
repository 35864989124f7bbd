//! Accepting connections.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper_util::server::graceful::GracefulShutdown;
use jiff::Timestamp;
use rustls::ServerConfig;
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};
use tokio_rustls::TlsAcceptor;

use super::{CertificateSource, ServerError, connection::serve_connection, http::Limits};
use crate::{
    certificates::{CertificateFiles, CertificateStore},
    declaration::ConversionDeclaration,
    metrics::WebhookMetrics,
    webhooks::Dispatcher,
};

/// The most connections at a time.
const MAX_CONNECTIONS: usize = 1024;

/// How long requests in progress may take when the server stops.
const DRAIN: Duration = Duration::from_secs(60);

/// The parts of a server.
pub(super) struct Parts {
    pub(super) dispatcher: Dispatcher,
    pub(super) conversions: Vec<ConversionDeclaration>,
    pub(super) source: CertificateSource,
    pub(super) store: CertificateStore,
    pub(super) tls: Arc<ServerConfig>,
    pub(super) metrics: WebhookMetrics,
}

/// A webhook server that listens and is ready to serve.
pub struct WebhookListener {
    listener: TcpListener,
    address: SocketAddr,
    started: Arc<AtomicBool>,
    parts: Parts,
}

pub(super) async fn bind(address: SocketAddr, parts: Parts) -> Result<WebhookListener, ServerError> {
    let listener = match TcpListener::bind(address).await {
        // A system without IPv6.
        Err(error)
            if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                && error.kind() != io::ErrorKind::AddrInUse =>
        {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    };
    let failed = |error: io::Error| ServerError::new(format!("cannot serve webhooks on {address}: {error}"));
    let listener = listener.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(WebhookListener { listener, address, started: Arc::default(), parts })
}

impl WebhookListener {
    /// Returns the address that the server listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Returns where the certificate comes from.
    pub fn certificate_source(&self) -> &CertificateSource {
        &self.parts.source
    }

    /// Returns the served certificate. The caller sets the certificate: see
    /// [`watch_files`](Self::watch_files) and [`Rotation`](crate::certificates::Rotation).
    pub fn certificates(&self) -> &CertificateStore {
        &self.parts.store
    }

    /// Returns the kinds that the webhooks convert.
    pub fn conversions(&self) -> &[ConversionDeclaration] {
        &self.parts.conversions
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &WebhookMetrics {
        &self.parts.metrics
    }

    /// Returns a future that reads the certificate from `files` periodically. The future never completes.
    pub fn watch_files(&self, files: CertificateFiles) -> impl Future<Output = ()> + Send + 'static {
        let (store, metrics) = (self.parts.store.clone(), self.parts.metrics.certificates().clone());
        async move { files.watch(&store, &metrics).await }
    }

    /// Returns a check that fails until the server serves with a valid certificate.
    pub fn started_check(&self) -> impl Fn(Timestamp) -> Result<(), String> + Send + Sync + 'static {
        let (started, store) = (self.started.clone(), self.parts.store.clone());
        move |now| {
            if !started.load(Ordering::Acquire) {
                return Err("webhook server has not been started yet".to_owned());
            }
            match store.get() {
                None => Err("the webhook server has no certificate".to_owned()),
                Some(certificate) if certificate.not_after() <= now => Err(format!(
                    "the certificate of the webhook server expired at {}",
                    certificate.not_after()
                )),
                Some(_) => Ok(()),
            }
        }
    }

    /// Serves until `shutdown` completes; then requests in progress have up to a minute.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let connections = GracefulShutdown::new();
        let acceptor = TlsAcceptor::from(self.parts.tls.clone());
        let (limits, slots) = (Arc::new(Limits::default()), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        let mut tasks = JoinSet::new();
        tokio::pin!(shutdown);
        self.started.store(true, Ordering::Release);
        tracing::info!(address = %self.address, "serving webhooks");
        loop {
            let next = async {
                let slot = slots.clone().acquire_owned().await;
                (self.listener.accept().await, slot)
            };
            let (accepted, slot) = tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = tasks.join_next() => continue,
                next = next => next,
            };
            let Ok((stream, _)) = accepted else {
                // Most likely out of file descriptors: wait until some are closed.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (acceptor, dispatcher) = (acceptor.clone(), self.parts.dispatcher.clone());
            let (watcher, limits) = (connections.watcher(), limits.clone());
            tasks.spawn(async move {
                serve_connection(stream, acceptor, dispatcher, watcher, limits).await;
                drop(slot);
            });
        }
        self.started.store(false, Ordering::Release);
        drop(self.listener);
        let _ = tokio::time::timeout(DRAIN, connections.shutdown()).await;
    }
}

impl fmt::Debug for WebhookListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookListener").field("address", &self.address).finish_non_exhaustive()
    }
}
