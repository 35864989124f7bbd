//! Opens connections: directly or through a proxy, with or without TLS.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use base64::Engine;
use futures::{TryFutureExt, future::BoxFuture};
use http::{HeaderValue, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, MaybeHttpsStream};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::connect::{
        Connection, HttpConnector,
        proxy::{SocksV5, Tunnel},
    },
    rt::TokioIo,
};
use kube_client::Config;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::net::TcpStream;
use tower::{Service, ServiceExt};

use crate::{
    error::{BoxError, Error, Result},
    read_ahead::ReadAhead,
    tls::TlsFiles,
};

/// The silence of a connection after which TCP asks the peer whether the peer is there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The time between two questions without an answer.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// The number of questions without an answer that end a connection.
const KEEP_ALIVE_RETRIES: u32 = 3;

/// A connection to the server, inside of TLS and of a proxy's tunnel.
pub(crate) type Stream = <TimeoutConnector<HttpsConnector<Route>> as Service<Uri>>::Response;

/// Opens connections to one server.
pub(crate) struct Dialer {
    config: Arc<Config>,
    tls: Arc<TlsFiles>,
    server_name: Option<ServerName<'static>>,
}

/// The protocols that a new connection offers to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Any,
    Http1,
}

impl Dialer {
    pub(crate) fn new(config: &Arc<Config>) -> Result<Self, kube_client::Error> {
        let server_name = match &config.tls_server_name {
            Some(name) => Some(ServerName::try_from(name.clone()).map_err(|error| {
                kube_client::Error::Service(Error::setup("the tls-server-name", error).into())
            })?),
            None => None,
        };
        if let Some(proxy) = &config.proxy_url
            && !matches!(proxy.scheme_str(), Some("http" | "https" | "socks5"))
        {
            return Err(kube_client::Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy.clone()) });
        }
        Ok(Self { config: config.clone(), tls: Arc::new(TlsFiles::new(config)?), server_name })
    }

    pub(crate) fn tls(&self) -> &Arc<TlsFiles> {
        &self.tls
    }

    /// Opens a connection, within the configuration's time-out. Returns the connection and the generation of its certificates.
    pub(crate) async fn dial(self: Arc<Self>, url: Uri, offer: Offer) -> Result<(Stream, u64), BoxError> {
        self.tls.reload().await?;
        let configs = self.tls.configs();
        let tls = if offer == Offer::Any { configs.any } else { configs.http1.clone() };
        let connector = self.https(Route::new(&self.config, || self.https(tcp(), configs.http1)), tls);
        let mut connector = TimeoutConnector::new(connector);
        connector.set_connect_timeout(self.config.connect_timeout);
        connector.set_read_timeout(self.config.read_timeout);
        connector.set_write_timeout(self.config.write_timeout);
        connector.set_reset_reader_on_write(self.config.reset_reader_on_write);
        Ok((connector.oneshot(url).await?, configs.generation))
    }

    fn https<H>(&self, inner: H, tls: Arc<ClientConfig>) -> HttpsConnector<H> {
        match &self.server_name {
            Some(name) => {
                let resolver = Arc::new(FixedServerNameResolver::new(name.clone()));
                HttpsConnector::new(inner, tls, false, resolver)
            }
            None => HttpsConnector::from((inner, tls)),
        }
    }
}

/// Returns true if the server chose HTTP/2 for a connection.
pub(crate) fn is_http2(stream: &Stream) -> bool {
    stream.connected().is_negotiated_h2()
}

/// The way to the server, beneath TLS.
pub(crate) enum Route {
    Direct(HttpConnector),
    Tunnel(Tunnel<HttpConnector>),
    /// A tunnel through a proxy that speaks TLS.
    TlsTunnel(Tunnel<HttpsConnector<HttpConnector>>),
    Socks(SocksV5<HttpConnector>),
}

impl Route {
    fn new(config: &Config, https: impl FnOnce() -> HttpsConnector<HttpConnector>) -> Self {
        let Some(proxy) = config.proxy_url.clone() else { return Self::Direct(tcp()) };
        match proxy.scheme_str() {
            Some("socks5") => Self::Socks(socks(proxy)),
            Some("https") => Self::TlsTunnel(with_password(Tunnel::new(proxy.clone(), https()), &proxy)),
            _ => Self::Tunnel(with_password(Tunnel::new(proxy.clone(), tcp()), &proxy)),
        }
    }
}

impl Service<Uri> for Route {
    type Response = ReadAhead<MaybeHttpsStream<TokioIo<TcpStream>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Each connector is called once, and none of them has a limit.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Direct(direct) => read_ahead(direct.call(server).map_ok(MaybeHttpsStream::Http)),
            Self::Tunnel(tunnel) => read_ahead(tunnel.call(server).map_ok(MaybeHttpsStream::Http)),
            Self::Socks(socks) => read_ahead(socks.call(server).map_ok(MaybeHttpsStream::Http)),
            Self::TlsTunnel(tunnel) => read_ahead(tunnel.call(server)),
        }
    }
}

fn read_ahead<S, E: Into<BoxError>>(
    dial: impl Future<Output = Result<S, E>> + Send + 'static,
) -> BoxFuture<'static, Result<ReadAhead<S>, BoxError>> {
    Box::pin(async move { dial.await.map(ReadAhead::new).map_err(Into::into) })
}

/// Returns a connector with TCP keep-alive: a watch over HTTP/1.1, which has no pings, ends within a minute of silence on the way.
fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
    connector
}

/// Returns the tunnel of a proxy, with the user and password of the proxy's URL, which are percent-encoded.
fn socks(proxy: Uri) -> SocksV5<HttpConnector> {
    let Some(user_info) = user_info(&proxy) else { return SocksV5::new(proxy, tcp()) };
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let plain = |text| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = (plain(user), plain(password));
    SocksV5::new(proxy, tcp()).with_auth(user, password)
}

/// Returns the part of a URL before the `@`.
fn user_info(url: &Uri) -> Option<&str> {
    url.authority()?.as_str().rsplit_once('@').map(|(user_info, _)| user_info)
}

/// Adds the user and password of a proxy's URL, which are percent-encoded.
fn with_password<C>(tunnel: Tunnel<C>, proxy: &Uri) -> Tunnel<C> {
    let Some(user_info) = user_info(proxy) else { return tunnel };
    let plain: Vec<u8> = percent_encoding::percent_decode_str(user_info).collect();
    let basic = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(plain));
    match HeaderValue::from_str(&basic) {
        Ok(basic) => tunnel.with_auth(basic),
        Err(_) => tunnel,
    }
}

/// Opens the connections of hyper's pool for HTTP/1.1.
#[derive(Clone)]
pub(crate) struct Http1Connector(pub(crate) Arc<Dialer>);

impl Service<Uri> for Http1Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let dial = self.0.clone().dial(server, Offer::Http1);
        Box::pin(async move { Ok(dial.await?.0) })
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_connection_has_tcp_keep_alive() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let stream = tcp().oneshot(url.parse().expect("a URL")).await.expect("a connection").into_inner();
        let socket = socket2::SockRef::from(&stream);
        assert!(socket.keepalive().expect("an option"));
        assert_eq!(socket.tcp_keepalive_time().expect("an option"), KEEP_ALIVE);
        assert_eq!(socket.tcp_keepalive_interval().expect("an option"), KEEP_ALIVE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().expect("an option"), KEEP_ALIVE_RETRIES);
    }
}
