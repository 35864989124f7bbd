//! The TLS listener: HTTP/1.1 and HTTP/2 on one port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::future::join;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::CertificateDer;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle as Runtime;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use windlass_cork::cork;

use super::client_certificates::{ClientCertificates, ClientChain};
use super::connection::{RequestFutures, drive};
use super::door;
use super::in_flight::InFlightBody;
use super::kubeconfig::kubeconfig;
use super::server_certificate::{self, CertificateTextError, ServerCertificate};
use super::strangers::{Stranger, StrangerLimits, Strangers};
use super::switch::Switch;
use super::unread::DrainOnDrop;
use super::{AUDIT_ID, CertificateAuthority, CertificateError, Handle, RequestBody, malformed, refuse};
use crate::auth::{Authenticated, AuthenticationResult, ClientAuth, Identity, Tokens, authenticate};
use crate::body::Body;
use crate::wire::ApiError;

/// The time limit of a TLS handshake; the real server's figure.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(32);
/// The time limit for the first request of a connection; the real server's figure.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(32);
/// The time limit for the silence of an HTTP/1.1 connection between two requests; the real server's figure.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// An HTTP/2 client that is silent this long must answer a ping.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The time limit for the answer to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection is silent before TCP probes the client; the real server's figure.
const PROBES_AFTER: Duration = Duration::from_secs(180);
/// The time between two probes; the real server's figure.
const PROBE_INTERVAL: Duration = Duration::from_secs(15);
/// The limit of the headers of a request, in bytes; the real server's figure.
const HEADER_BYTES: u32 = 1 << 20;
/// The limit of the headers of an HTTP/1.1 request, as a number.
const HEADERS: usize = 1_000;
/// How long the listener waits after a connection that cannot be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The number of silent connections that are closed then.
const GIVEN_WAY: usize = 16;
/// The bytes of a body that an HTTP/2 client may send ahead of the reader; the real server's value.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The bytes that an HTTP/2 client may send on a connection ahead of the reader.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The bytes of a reply that wait for the client of an HTTP/2 stream, beyond the first piece.
const SEND_BUFFER: usize = 128 * 1024;
/// How long a shutdown waits for requests in flight.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of a listener: the address and the bearer tokens.
#[derive(Clone, Debug)]
pub struct Listen {
    address: SocketAddr,
    allow_remote: bool,
    anonymous: bool,
    tokens: Tokens,
    certificate: Option<ServerCertificate>,
    client_authorities: Vec<CertificateDer<'static>>,
    /// Further addresses of the server, for the certificate.
    addresses: Vec<IpAddr>,
    pub(super) strangers: StrangerLimits,
}

impl Default for Listen {
    /// Listens on a free port of the loopback address.
    fn default() -> Self {
        Self::on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }
}

impl Listen {
    /// Listens on `address`. Port 0 chooses a free port.
    pub fn on(address: SocketAddr) -> Self {
        Self {
            address,
            allow_remote: false,
            anonymous: true,
            tokens: Tokens::default(),
            certificate: None,
            client_authorities: Vec::new(),
            addresses: Vec::new(),
            strangers: StrangerLimits::default(),
        }
    }

    /// Listens on `port` of the loopback address. 0 chooses a free port.
    pub fn port(port: u16) -> Self {
        Self::on(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Permits an address that other machines can reach. Requests from other machines need the same
    /// authentication.
    pub fn allow_remote(mut self) -> Self {
        self.allow_remote = true;
        self
    }

    /// Presents `certificate` to clients. By default, the listener's own [authority](RunningListener::authority)
    /// issues a certificate for the address, the [advertised address](crate::ServerBuilder::advertise_address) and the address of
    /// the Service `kubernetes`.
    pub fn certificate(mut self, certificate: ServerCertificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Also authenticates clients by certificates of these authorities, in PEM. The common name of a
    /// certificate is the user's name, and the organizations are the groups.
    ///
    /// # Errors
    /// The text has no certificate.
    pub fn client_authorities(mut self, pem: &[u8]) -> Result<Self, CertificateTextError> {
        self.client_authorities.extend(server_certificate::certificates(pem)?);
        Ok(self)
    }

    /// Adds `addresses` to the certificate that the listener's own authority issues.
    pub(crate) fn also_at(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.addresses.extend(addresses);
        self
    }

    /// Refuses requests without credentials with 401, instead of treating the client as `system:anonymous`.
    pub fn without_anonymous(mut self) -> Self {
        self.anonymous = false;
        self
    }

    /// Authenticates requests with the bearer `token` as `identity`, as long as this listener exists.
    pub fn with_token(mut self, token: &str, identity: Identity) -> Self {
        self.tokens.add(token, identity);
        self
    }
}

/// A listener could not be started.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ListenError(#[from] ListenErrorKind);

#[derive(Debug, thiserror::Error)]
pub(super) enum ListenErrorKind {
    #[error(
        "{0} can be reached from other machines: choose a loopback address, or permit others with \
         Listen::allow_remote"
    )]
    Remote(IpAddr),
    #[error(
        "port {port} of {ip} is in use: stop the process that listens there, or choose another port (0 chooses a free one)"
    )]
    Taken { ip: IpAddr, port: u16 },
    #[error("cannot listen on {address}: {source}")]
    Bind { address: SocketAddr, source: std::io::Error },
    #[error("cannot start the thread that accepts connections: {0}")]
    Door(std::io::Error),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot set up the check of client certificates: {0}")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
}

impl From<CertificateError> for ListenError {
    fn from(error: CertificateError) -> Self {
        Self(ListenErrorKind::Certificate(error))
    }
}

impl ListenError {
    /// Returns whether another process listens on the port.
    pub fn is_address_in_use(&self) -> bool {
        matches!(self.0, ListenErrorKind::Taken { .. })
    }
}

/// A running listener. Dropping it closes the port at once; [`shutdown`](Self::shutdown) waits for requests in flight.
#[derive(Debug)]
pub struct RunningListener {
    address: SocketAddr,
    authority: CertificateAuthority,
    kubeconfig: String,
    tokens: Arc<Tokens>,
    stopping: CancellationToken,
    /// Cancelled when the connections that are still open are closed.
    closing: CancellationToken,
    accepting: JoinHandle<Option<GracefulShutdown>>,
    conversations: TaskTracker,
}

impl RunningListener {
    /// Returns the address, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as a URL.
    pub fn url(&self) -> String {
        url(self.address)
    }

    /// Returns the certificate authority, to issue certificates for more users.
    pub fn authority(&self) -> &CertificateAuthority {
        &self.authority
    }

    pub(crate) fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// Returns a kubeconfig with the rights of an administrator.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Returns a kubeconfig for another user.
    pub fn kubeconfig_for(&self, user: &super::ClientCertificate) -> String {
        kubeconfig(&self.url(), self.authority.certificate_pem(), user)
    }

    /// Completes when the listener stops.
    pub(crate) fn stopped(&self) -> WaitForCancellationFutureOwned {
        self.stopping.clone().cancelled_owned()
    }

    /// Closes the port, ends watches and the streams of pods, and waits up to five seconds for requests in flight. Then closes the
    /// connections that are still open, and drops their requests.
    pub async fn shutdown(mut self) {
        self.stopping.cancel();
        self.conversations.close();
        if let Ok(Some(connections)) = (&mut self.accepting).await {
            let mut all = pin!(join(connections.shutdown(), self.conversations.wait()));
            if tokio::time::timeout(DRAIN_TIMEOUT, &mut all).await.is_err() {
                self.closing.cancel();
                all.await;
            }
        }
    }
}

impl Drop for RunningListener {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

fn url(address: SocketAddr) -> String {
    format!("https://{address}")
}

/// Starts a listener. The port is open when this returns.
pub(crate) async fn listen(
    handler: Arc<dyn Handle>,
    options: Listen,
) -> Result<RunningListener, ListenError> {
    start(handler, options).await.map_err(ListenError)
}

async fn start(handler: Arc<dyn Handle>, options: Listen) -> Result<RunningListener, ListenErrorKind> {
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

    let authority = CertificateAuthority::generate()?;
    let admin = authority.client(Identity::admin().name(), Some(Identity::MASTERS))?;
    let clients = Arc::new(ClientCertificates::of(&authority, &options.client_authorities)?);
    let addresses = [&[address.ip()], options.addresses.as_slice()].concat();
    let certificate = match options.certificate {
        Some(certificate) => certificate,
        None => authority.server(&addresses)?,
    };
    let config = server_config(certificate, Arc::clone(&clients))?;
    let tokens = Arc::new(options.tokens);
    let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
    let conversations = TaskTracker::new();
    let accept = Accept {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        clients,
        handler,
        tokens: Arc::downgrade(&tokens),
        anonymous: options.anonymous,
        stopping: stopping.clone(),
        closing: closing.clone(),
        conversations: conversations.clone(),
        strangers: Strangers::new(options.strangers),
        runtime: Runtime::current(),
    };
    let listener = listener.into_std().map_err(ListenErrorKind::Door)?;
    let accepting = door::open(accept.run(listener), &stopping).await.map_err(ListenErrorKind::Door)?;
    Ok(RunningListener {
        kubeconfig: kubeconfig(&url(address), authority.certificate_pem(), &admin),
        address,
        authority,
        tokens,
        stopping,
        closing,
        accepting,
        conversations,
    })
}

fn server_config(
    certificate: ServerCertificate,
    clients: Arc<ClientCertificates>,
) -> Result<ServerConfig, ListenErrorKind> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(certificate.chain, certificate.key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn auto_server(begun: RequestFutures) -> auto::Builder<RequestFutures> {
    let mut server = auto::Builder::new(begun);
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_headers(HEADERS)
        .max_buf_size(HEADER_BYTES as usize);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_header_list_size(HEADER_BYTES)
        .max_concurrent_streams(250)
        .max_send_buf_size(SEND_BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    server
}

/// Sets the options of an accepted connection.
pub(super) fn tune(stream: &TcpStream) {
    // Watch events are small writes that must not be delayed.
    let _ = stream.set_nodelay(true);
    // Nothing else finds out that the client of a silent HTTP/1.1 watch has lost the network.
    let probes = TcpKeepalive::new().with_time(PROBES_AFTER).with_interval(PROBE_INTERVAL);
    let _ = SockRef::from(stream).set_tcp_keepalive(&probes);
}

/// Lets a client of HTTP/1 send the rest of the body of a refused request.
fn drain(request: Request<Incoming>) {
    if request.version() < http::Version::HTTP_2 {
        drop(DrainOnDrop::new(request.into_body()));
    }
}

/// Completes if a connection has no request in time.
async fn no_request(connection: &Stranger) {
    tokio::time::sleep(FIRST_REQUEST_TIMEOUT).await;
    if connection.has_asked() || connection.is_known() {
        std::future::pending::<()>().await;
    }
}

/// The errors of the accept loop, logged once a second.
#[derive(Default)]
struct Complaints {
    last: Option<Instant>,
    count: u64,
}

impl Complaints {
    fn add(&mut self, error: &std::io::Error) {
        self.count += 1;
        if self.last.is_none_or(|last| last.elapsed() >= Duration::from_secs(1)) {
            let failures = std::mem::take(&mut self.count);
            tracing::warn!(%error, failures, "cannot accept a connection");
            self.last = Some(Instant::now());
        }
    }
}

/// The accept loop, and the shared state of connections.
#[derive(Clone)]
struct Accept {
    acceptor: TlsAcceptor,
    clients: Arc<ClientCertificates>,
    handler: Arc<dyn Handle>,
    /// The listener owns the tokens: the tokens become invalid with the end of the listener.
    tokens: Weak<Tokens>,
    /// True if requests without credentials are answered.
    anonymous: bool,
    stopping: CancellationToken,
    closing: CancellationToken,
    /// The connections that have switched to another protocol.
    conversations: TaskTracker,
    strangers: Strangers,
    /// The runtime of the connections.
    runtime: Runtime,
}

impl Accept {
    /// Accepts connections until the listener stops. Returns the connections that are still open.
    async fn run(self, listener: std::net::TcpListener) -> GracefulShutdown {
        let connections = GracefulShutdown::new();
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                return connections;
            }
        };
        let mut complaints = Complaints::default();
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return connections,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        tokio::spawn(self.clone().handshake(stream, connections.watcher()));
                    }
                    Err(error) => {
                        complaints.add(&error);
                        self.make_room().await;
                    }
                },
            }
        }
    }

    /// Closes silent connections: most likely the process is out of file descriptors.
    async fn make_room(&self) {
        (0..GIVEN_WAY).take_while(|_| self.strangers.close_one()).for_each(drop);
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    /// Begins TLS, and hands the connection to the runtime of the connections.
    async fn handshake(self, stream: TcpStream, watcher: Watcher) {
        tune(&stream);
        let is_local = stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback());
        let stranger = Arc::new(self.strangers.add());
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream));
        let stream = tokio::select! {
            stream = handshake => stream,
            () = stranger.closed() => return tracing::debug!("a connection without a user gives way"),
        };
        let Ok(Ok(stream)) = stream else {
            return tracing::debug!("a TLS handshake failed");
        };
        // Before other silent connections arrive: the runtime of the connections may be busy.
        let (chain, now) = (stream.get_ref().1.peer_certificates().unwrap_or_default(), self.handler.now());
        let client = ClientChain::new(&self.clients, chain, now);
        if matches!(*client.authenticate(&self.clients, now), ClientAuth::Verified(_)) {
            stranger.identify();
        }
        let runtime = self.runtime.clone();
        runtime.spawn(self.connection(stream, client, is_local, stranger, watcher));
    }

    /// Moves a stream to the runtime of the connections.
    async fn take_over(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        if door::take_over(stream).is_ok() {
            return Ok(());
        }
        self.make_room().await;
        door::take_over(stream)
    }

    async fn connection(
        self,
        mut stream: TlsStream<TcpStream>,
        client: ClientChain,
        is_local: bool,
        stranger: Arc<Stranger>,
        watcher: Watcher,
    ) {
        if let Err(error) = self.take_over(stream.get_mut().0).await {
            return tracing::debug!(%error, "cannot keep a connection");
        }
        let (begun, closing) = (RequestFutures::default(), self.closing.clone());
        let server = auto_server(begun.clone());
        let asking = Arc::clone(&stranger);
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            if is_local {
                // On the way to a process of this machine, compression costs more than the transfer, on both
                // sides.
                request.headers_mut().remove(header::ACCEPT_ENCODING);
            }
            let (accept, client, stranger) = (self.clone(), client.clone(), Arc::clone(&asking));
            async move {
                let in_flight = stranger.begin();
                let response = accept.request(request, client, &stranger).await;
                let response = response.map(|body| InFlightBody::new(body, in_flight));
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let (stream, hand) = cork(stream);
        let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        tokio::select! {
            ended = drive(watcher.watch(connection), begun, hand) => if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            },
            () = closing.cancelled() => tracing::debug!("a connection is closed, because the server stops"),
            () = stranger.closed() => tracing::debug!("a connection without a user gives way"),
            () = no_request(&stranger) => tracing::debug!("a connection without a request ends"),
        }
    }

    async fn request(
        self,
        request: Request<Incoming>,
        client: ClientChain,
        stranger: &Stranger,
    ) -> Response<Body> {
        if let Some(refusal) = malformed::refusal(&request) {
            drain(request);
            return refusal;
        }
        let since = Instant::now();
        let client = client.authenticate(&self.clients, self.handler.now());
        let authenticated = authenticate(&client, request.headers(), |token| {
            let own = self.tokens.upgrade().and_then(|tokens| tokens.find(token).cloned());
            own.or_else(|| self.handler.identity_of(token))
        });
        let result = match &authenticated {
            Authenticated::As(identity) if self.anonymous || !identity.is_anonymous() => {
                AuthenticationResult::Success(identity.name())
            }
            Authenticated::AnonymousWithWarning(_) if self.anonymous => {
                AuthenticationResult::Success("system:anonymous")
            }
            Authenticated::Refused => AuthenticationResult::Error,
            _ => AuthenticationResult::Failure,
        };
        self.handler.authenticated(&result, since.elapsed());
        match authenticated {
            Authenticated::As(identity) if self.anonymous || !identity.is_anonymous() => {
                if !identity.is_anonymous() {
                    stranger.identify();
                }
                self.answer(request, identity).await
            }
            Authenticated::AnonymousWithWarning(text) if self.anonymous => {
                let mut response = self.answer(request, Identity::anonymous()).await;
                if let Ok(warning) = HeaderValue::try_from(format!("299 - \"{text}\"")) {
                    response.headers_mut().append(header::WARNING, warning);
                }
                response
            }
            _ => {
                let mut response = refuse(&ApiError::unauthorized());
                if let Some(id) = self.handler.audit_id(request.headers()) {
                    response.headers_mut().insert(AUDIT_ID, id);
                }
                drain(request);
                response
            }
        }
    }

    async fn answer(self, mut request: Request<Incoming>, identity: Identity) -> Response<Body> {
        let switch = Switch::requested(&mut request);
        let is_http1 = request.version() < http::Version::HTTP_2;
        let request = request.map(|body| {
            if is_http1 { RequestBody::new(DrainOnDrop::new(body)) } else { RequestBody::new(body) }
        });
        let response = self.handler.handle(request, identity).await;
        let Self { conversations, stopping, closing, .. } = self;
        switch.answer(response, stopping, |conversation| {
            drop(conversations.spawn(closing.run_until_cancelled_owned(conversation)));
        })
    }
}
