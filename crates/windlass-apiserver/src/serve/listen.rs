//! The way in over TLS: HTTP/1.1 and HTTP/2 on one port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use rustls::crypto::ring;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::client_certificates::ClientCertificates;
use super::kubeconfig::kubeconfig;
use super::unread::DrainOnDrop;
use super::websocket::WebSocket;
use super::{Authority, CertificateError, Handle, RequestBody, refuse};
use crate::auth::{Authenticated, ClientAuth, Identity, Tokens, authenticate};
use crate::body::Body;
use crate::wire::ApiError;

/// A client that has not finished its TLS handshake by then is let go.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A client that has not sent its headers by then is let go; the real server's figure.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// What an HTTP/2 client may send of one body before it is read; the real server's figure.
const STREAM_WINDOW: u32 = 256 * 1024;
/// What an HTTP/2 client may send in all before it is read.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// How long requests under way may take to end at a shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Where and for whom to listen.
#[derive(Clone, Debug)]
pub struct Listen {
    address: SocketAddr,
    allow_remote: bool,
    tokens: Tokens,
}

impl Default for Listen {
    /// Loopback, at any free port.
    fn default() -> Self {
        Self::on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }
}

impl Listen {
    /// Listens on `address`; port 0 is any free one.
    pub fn on(address: SocketAddr) -> Self {
        Self { address, allow_remote: false, tokens: Tokens::default() }
    }

    /// Listens on loopback, at `port`; 0 is any free one.
    pub fn port(port: u16) -> Self {
        Self::on(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Lets the address be one that other machines reach. Whoever reaches it can try to get in.
    pub fn allow_remote(mut self) -> Self {
        self.allow_remote = true;
        self
    }

    /// Lets whoever shows the bearer `token` in as `identity`.
    pub fn with_token(mut self, token: &str, identity: Identity) -> Self {
        self.tokens.add(token, identity);
        self
    }
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ListenError(#[from] ListenErrorKind);

#[derive(Debug, thiserror::Error)]
pub(super) enum ListenErrorKind {
    #[error(
        "{0} can be reached from other machines, and who reaches it can try to get in: name a loopback address, \
         or allow remote addresses explicitly"
    )]
    Remote(IpAddr),
    #[error(
        "port {port} on {ip} is taken: stop what listens there, or choose another port (0 is any free one)"
    )]
    Taken { ip: IpAddr, port: u16 },
    #[error("cannot listen on {address}: {source}")]
    Bind { address: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot set up the check of client certificates: {0}")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
}

impl ListenError {
    /// Whether somebody else listens on the port.
    pub fn is_address_in_use(&self) -> bool {
        matches!(self.0, ListenErrorKind::Taken { .. })
    }
}

/// A server that listens. Dropping it stops it at once; [`shutdown`](Self::shutdown) lets requests end.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    authority: Authority,
    kubeconfig: String,
    tokens: Arc<Tokens>,
    stopping: CancellationToken,
    accepting: JoinHandle<GracefulShutdown>,
}

impl Listening {
    /// The address, with the port that was found free.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL.
    pub fn url(&self) -> String {
        url(self.address)
    }

    /// The authority of this server: for certificates of more users.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(crate) fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// A kubeconfig with the rights of an administrator. Whoever reads it owns the server.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A kubeconfig for another user.
    pub fn kubeconfig_for(&self, user: &super::ClientCertificate) -> String {
        kubeconfig(&self.url(), self.authority.certificate_pem(), user)
    }

    /// Stops listening, ends watches, and waits a little for the requests under way.
    pub async fn shutdown(mut self) {
        self.stopping.cancel();
        if let Ok(connections) = (&mut self.accepting).await {
            // What has not ended by then is cut with its task.
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, connections.shutdown()).await;
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

fn url(address: SocketAddr) -> String {
    format!("https://{address}")
}

/// Starts to listen. The port is open when this returns.
pub(crate) async fn listen(handler: Arc<dyn Handle>, options: Listen) -> Result<Listening, ListenError> {
    start(handler, options).await.map_err(ListenError)
}

async fn start(handler: Arc<dyn Handle>, options: Listen) -> Result<Listening, ListenErrorKind> {
    let wanted = options.address;
    if !wanted.ip().is_loopback() && !options.allow_remote {
        return Err(ListenErrorKind::Remote(wanted.ip()));
    }
    let listener = TcpListener::bind(wanted).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => ListenErrorKind::Taken { ip: wanted.ip(), port: wanted.port() },
        _ => ListenErrorKind::Bind { address: wanted, source },
    })?;
    let address =
        listener.local_addr().map_err(|source| ListenErrorKind::Bind { address: wanted, source })?;

    let authority = Authority::generate()?;
    let admin = authority.client(Identity::admin().name(), Some(Identity::MASTERS))?;
    let clients = Arc::new(ClientCertificates::of(&authority)?);
    let config = server_config(&authority, address.ip(), Arc::clone(&clients))?;
    let tokens = Arc::new(options.tokens);
    let stopping = CancellationToken::new();
    let accept = Accept {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        clients,
        handler,
        tokens: Arc::downgrade(&tokens),
        stopping: stopping.clone(),
        server: auto_server(),
    };
    Ok(Listening {
        kubeconfig: kubeconfig(&url(address), authority.certificate_pem(), &admin),
        address,
        authority,
        tokens,
        stopping,
        accepting: tokio::spawn(accept.run(listener)),
    })
}

fn server_config(
    authority: &Authority,
    address: IpAddr,
    clients: Arc<ClientCertificates>,
) -> Result<ServerConfig, ListenErrorKind> {
    let (certificate, key) = authority.server(address)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn auto_server() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    server
}

/// The accepting task: what a connection needs.
#[derive(Clone)]
struct Accept {
    acceptor: TlsAcceptor,
    clients: Arc<ClientCertificates>,
    handler: Arc<dyn Handle>,
    /// The listener owns the tokens, so that they are no longer valid when it is gone.
    tokens: Weak<Tokens>,
    stopping: CancellationToken,
    server: auto::Builder<TokioExecutor>,
}

impl Accept {
    /// Accepts until told to stop; the connections that are open then are the caller's to wait for.
    async fn run(self, listener: TcpListener) -> GracefulShutdown {
        let connections = GracefulShutdown::new();
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return connections,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        tokio::spawn(self.clone().connection(stream, connections.watcher()));
                    }
                    Err(error) => {
                        // Out of file descriptors, most likely: the next may fare better.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
    }

    async fn connection(self, stream: TcpStream, watcher: Watcher) {
        // Small writes are the rule here: watch events, one by one.
        let _ = stream.set_nodelay(true);
        let is_local = stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback());
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream));
        let Ok(Ok(stream)) = handshake.await else {
            return tracing::debug!("a TLS handshake failed");
        };
        let client = self.clients.authenticate(stream.get_ref().1.peer_certificates().unwrap_or_default());
        let server = self.server.clone();
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            if is_local {
                // On the way to a process of this machine, compression costs more than it saves, on both sides.
                request.headers_mut().remove(header::ACCEPT_ENCODING);
            }
            let (accept, client) = (self.clone(), client.clone());
            async move { Ok::<_, std::convert::Infallible>(accept.request(request, client).await) }
        });
        let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    async fn request(self, request: Request<Incoming>, client: ClientAuth) -> Response<Body> {
        let authenticated = authenticate(&client, request.headers(), |token| {
            let own = self.tokens.upgrade().and_then(|tokens| tokens.find(token).cloned());
            own.or_else(|| self.handler.identity_of(token))
        });
        match authenticated {
            Authenticated::As(identity) => self.answer(request, identity).await,
            Authenticated::AnonymousWithWarning(text) => {
                let mut response = self.answer(request, Identity::anonymous()).await;
                if let Ok(warning) = HeaderValue::try_from(format!("299 - \"{text}\"")) {
                    response.headers_mut().append(header::WARNING, warning);
                }
                response
            }
            Authenticated::Refused => refuse(&ApiError::unauthorized()),
        }
    }

    async fn answer(self, mut request: Request<Incoming>, identity: Identity) -> Response<Body> {
        let websocket = WebSocket::requested(&mut request);
        let is_http1 = request.version() < http::Version::HTTP_2;
        let request = request.map(|body| {
            if is_http1 { RequestBody::new(DrainOnDrop::new(body)) } else { RequestBody::new(body) }
        });
        let response = self.handler.handle(request, identity).await;
        let response = response.map(|body| body.until(self.stopping.cancelled_owned()));
        match websocket {
            Some(websocket) => websocket.answer(response),
            None => response,
        }
    }
}
