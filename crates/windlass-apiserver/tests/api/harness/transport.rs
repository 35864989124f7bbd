//! Two ways to the same server: in process, or a connection per request over TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, ORIGIN};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, client::IntoClientRequest};
use tower_service::Service;
use windlass_apiserver::{Identity, Listen, RunningListener, Server};

use super::kubeconfig::Kubeconfig;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Names a kubeconfig: the tests are then aimed at its server.
const KUBECONFIG: &str = "WINDLASS_TEST_KUBECONFIG";
/// Set to any value, it sends the requests to embedded servers over TLS.
const TLS: &str = "WINDLASS_TEST_TLS";

/// The credentials of a request.
#[derive(Clone, Debug)]
pub(super) enum Credentials {
    Admin,
    None,
    Token(String),
}

pub(super) enum Transport {
    /// A server that this test has for itself.
    Embedded { server: Server, over_tls: bool, listener: OnceCell<Box<(RunningListener, Tcp)>> },
    /// A server that others use, too.
    Real(Box<Tcp>),
}

impl Transport {
    /// Opens a server for a test. Unless `over_tls` is set, the administrator's requests to an embedded
    /// server stay in process.
    pub(super) fn open(over_tls: bool) -> Self {
        if let Some(path) = std::env::var_os(KUBECONFIG) {
            return Transport::Real(Box::new(Tcp::new(&Kubeconfig::read(path.as_ref()))));
        }
        let over_tls = over_tls || std::env::var_os(TLS).is_some();
        Self::embedded(Server::builder().build().expect("a server"), over_tls)
    }

    pub(super) fn embedded(server: Server, over_tls: bool) -> Self {
        Transport::Embedded { server, over_tls, listener: OnceCell::new() }
    }

    /// A server behind a listener with these settings.
    pub(super) async fn listening(server: Server, options: Listen) -> Self {
        let listening = server.listen(options).await.expect("a free port");
        let tcp = Tcp::new(&Kubeconfig::parse(listening.kubeconfig(), "".as_ref()));
        let listener = OnceCell::new_with(Some(Box::new((listening, tcp))));
        Transport::Embedded { server, over_tls: true, listener }
    }

    /// Makes the server forget the history. The real server forgets after some minutes.
    pub(super) fn compact(&self) {
        if let Transport::Embedded { server, .. } = self {
            server.compact();
        }
    }

    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Transport::Real(_))
    }

    /// The way over TLS.
    pub(super) async fn tcp(&self) -> &Tcp {
        match self {
            Transport::Real(tcp) => tcp,
            Transport::Embedded { server, listener, .. } => {
                let listen = || async {
                    let listening = server.listen(Listen::default()).await.expect("a free port");
                    let tcp = Tcp::new(&Kubeconfig::parse(listening.kubeconfig(), "".as_ref()));
                    Box::new((listening, tcp))
                };
                &listener.get_or_init(listen).await.1
            }
        }
    }

    pub(super) async fn send(
        &self,
        request: http::Request<Bytes>,
        credentials: &Credentials,
    ) -> http::Response<Body> {
        let request = request.map(Full::new);
        match (self, credentials) {
            (Transport::Embedded { server, over_tls: false, .. }, Credentials::Admin) => {
                let Ok(response) = server.service(Identity::admin()).call(request).await;
                response.map(|body| body.map_err(BoxError::from).boxed_unsync())
            }
            _ => self.tcp().await.send(request, credentials).await.expect("a reply"),
        }
    }
}

pub(super) struct Tcp {
    address: SocketAddr,
    host: String,
    roots: Arc<RootCertStore>,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
    token: Option<String>,
}

impl Tcp {
    fn new(config: &Kubeconfig) -> Self {
        let authority =
            config.server.strip_prefix("https://").expect("an https server").trim_end_matches('/');
        let authority: http::uri::Authority = authority.parse().expect("a host and a port");
        let address = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(443));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&config.authority) {
            roots.add(certificate.expect("a certificate")).expect("a certificate authority");
        }
        Tcp {
            address: address.parse().expect("an address with a port"),
            host: authority.host().to_owned(),
            roots: Arc::new(roots),
            certificate: config.certificate.clone(),
            token: config.token.clone(),
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The header of the administrator's token with the line end; empty without a token.
    pub(super) fn token_header(&self) -> String {
        self.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default()
    }

    /// Opens a connection to the server for a protocol, with the client certificate of these credentials. The
    /// server's certificate must be for `host`.
    pub(super) async fn connect(
        &self,
        credentials: &Credentials,
        host: &str,
        protocol: &str,
    ) -> Result<TlsStream<TcpStream>, BoxError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let tls = tls.with_root_certificates(Arc::clone(&self.roots));
        let mut tls = match (&self.certificate, credentials) {
            (Some((chain, key)), Credentials::Admin) => {
                let chain =
                    CertificateDer::pem_slice_iter(chain).map(|item| item.expect("a certificate")).collect();
                let key = PrivateKeyDer::from_pem_slice(key).expect("a private key");
                tls.with_client_auth_cert(chain, key).expect("a key that fits its certificate")
            }
            _ => tls.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from(host.to_owned())?;
        Ok(TlsConnector::from(Arc::new(tls)).connect(name, socket).await?)
    }

    /// The value of the header `Authorization`.
    fn authorization(&self, credentials: &Credentials) -> Option<HeaderValue> {
        let token = match credentials {
            Credentials::Admin => self.token.as_ref()?,
            Credentials::None => return None,
            Credentials::Token(token) => token,
        };
        Some(HeaderValue::try_from(format!("Bearer {token}")).expect("a token"))
    }

    async fn send(
        &self,
        mut request: http::Request<Full<Bytes>>,
        credentials: &Credentials,
    ) -> Result<http::Response<Body>, BoxError> {
        let stream = self.connect(credentials, &self.host, "http/1.1").await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        request.headers_mut().insert(HOST, HeaderValue::try_from(self.address.to_string())?);
        if let Some(authorization) = self.authorization(credentials) {
            request.headers_mut().entry(AUTHORIZATION).or_insert(authorization);
        }
        let response = sender.send_request(request).await?;
        // The connection lives as long as its last body.
        Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
    }

    /// Asks to go on over WebSocket, with further headers. Any reply but 101 is an error.
    pub(super) async fn websocket(
        &self,
        path: &str,
        more: &[(HeaderName, &str)],
        credentials: &Credentials,
    ) -> Result<WebSocketStream<TlsStream<TcpStream>>, tungstenite::Error> {
        let address = self.address;
        let mut request = format!("wss://{address}{path}").into_client_request()?;
        let headers = request.headers_mut();
        headers.insert(ORIGIN, HeaderValue::try_from(format!("https://{address}"))?);
        for (name, value) in more {
            headers.insert(name, HeaderValue::try_from(*value)?);
        }
        if let Some(authorization) = self.authorization(credentials) {
            headers.insert(AUTHORIZATION, authorization);
        }
        let stream = self.connect(credentials, &self.host, "http/1.1").await.expect("a connection");
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await?;
        Ok(socket)
    }

    /// Sends a request over HTTP/2 whose body may go on for ever.
    pub(super) async fn send_stream(
        &self,
        mut request: http::Request<Body>,
        credentials: &Credentials,
    ) -> Result<http::Response<Body>, BoxError> {
        let stream = TokioIo::new(self.connect(credentials, &self.host, "h2").await?);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(connection);
        let path = request.uri().path_and_query().expect("a path").as_str();
        *request.uri_mut() = format!("https://{}{path}", self.address).parse()?;
        if let Some(authorization) = self.authorization(credentials) {
            request.headers_mut().entry(AUTHORIZATION).or_insert(authorization);
        }
        let response = sender.send_request(request).await?;
        Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
    }
}
