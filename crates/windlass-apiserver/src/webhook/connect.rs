//! TLS connections to webhooks, for the pool of an HTTP client.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection as PooledConnection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::endpoint::Location;
use super::service::Backend;
use super::trust::{self, ClientIdentity};
use super::{Endpoint, service};
use crate::network::PodNetwork;
use crate::nodes::Connection;
use crate::store::Store;

/// Connects to an endpoint.
#[derive(Clone)]
pub(crate) struct Connector {
    endpoint: Arc<Endpoint>,
    store: Arc<Store>,
    network: PodNetwork,
    tls: Arc<ClientConfig>,
}

/// Why there is no connection, in Go's words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConnectError(String);

impl Connector {
    /// Prepares connections to `endpoint`. Services are looked up in `store`. The other end may ask for the certificate of
    /// `identity`.
    pub(crate) async fn new(
        endpoint: &Endpoint,
        store: Arc<Store>,
        network: PodNetwork,
        identity: Option<&ClientIdentity>,
    ) -> Result<Self, String> {
        let tls = Arc::new(trust::client_config(endpoint, identity).await?);
        Ok(Self { endpoint: Arc::new(endpoint.clone()), store, network, tls })
    }

    async fn connect(self, uri: Uri) -> Result<TlsConnection, ConnectError> {
        let (name, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(443));
        let server_name = self.endpoint.server_name(name);
        let backend = match &self.endpoint.location {
            Location::Service { namespace, name, port, .. } => {
                service::resolve(&self.store.view(), namespace, name, *port).map_err(ConnectError)?
            }
            _ => Backend { host: server_name.clone(), port, pod: None },
        };
        let Backend { host, port, pod } = backend;
        let tcp = self.network.dial(&host, port, pod.as_ref()).await.map_err(ConnectError)?;
        let server_name = ServerName::try_from(server_name)
            .map_err(|_| ConnectError(format!("{name} is not a name that a certificate can have")))?;
        let stream = TlsConnector::from(self.tls).connect(server_name, tcp).await;
        let stream = stream.map_err(|error| ConnectError(trust::explain(&error)))?;
        Ok(TlsConnection(TokioIo::new(stream)))
    }
}

/// Begins TLS without a check of the certificate, as the real server does for `proxy`.
///
/// # Errors
/// The handshake fails.
pub(crate) async fn connect_unverified(connection: Connection, host: &str) -> Result<Connection, String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let config = trust::unverified_config()?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, connection).await;
    let stream = stream.map_err(|error| trust::explain(&error))?;
    Ok(Box::new(stream))
}

impl Service<Uri> for Connector {
    type Response = TlsConnection;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<TlsConnection, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A TLS connection that reports HTTP/2 to the pool.
pub(crate) struct TlsConnection(TokioIo<TlsStream<Connection>>);

impl PooledConnection for TlsConnection {
    fn connected(&self) -> Connected {
        let is_http2 = self.0.inner().get_ref().1.alpn_protocol() == Some(b"h2");
        if is_http2 { Connected::new().negotiated_h2() } else { Connected::new() }
    }
}

impl Read for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for TlsConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
