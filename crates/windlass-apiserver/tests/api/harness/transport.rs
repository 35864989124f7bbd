//! Two ways to the same server: in process, or a connection per request over TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderValue};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;
use windlass_apiserver::{Identity, Server};

use super::kubeconfig::Kubeconfig;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Names a kubeconfig: the tests are then aimed at its server.
const KUBECONFIG: &str = "WINDLASS_TEST_KUBECONFIG";

pub(super) enum Transport {
    /// A server that this test has for itself.
    Embedded(Server),
    /// A server that others use, too.
    Tcp(Box<Tcp>),
}

pub(super) struct Tcp {
    address: SocketAddr,
    host: String,
    tls: TlsConnector,
    authorization: Option<HeaderValue>,
}

impl Transport {
    pub(super) fn open() -> Self {
        if let Some(path) = std::env::var_os(KUBECONFIG) {
            return Transport::Tcp(Box::new(Tcp::new(&Kubeconfig::read(path.as_ref()))));
        }
        Transport::Embedded(Server::builder().build().expect("a server"))
    }

    /// Makes the server forget what was, as the real one does by itself after some minutes.
    pub(super) fn compact(&self) {
        if let Transport::Embedded(server) = self {
            server.compact();
        }
    }

    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Transport::Tcp(_))
    }

    pub(super) async fn send(&self, request: http::Request<Bytes>) -> http::Response<Body> {
        match self {
            Transport::Embedded(server) => {
                let Ok(response) = server.service(Identity::admin()).call(request.map(Full::new)).await;
                response.map(|body| body.map_err(BoxError::from).boxed_unsync())
            }
            Transport::Tcp(tcp) => tcp.send(request.map(Full::new)).await.expect("a reply"),
        }
    }
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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.expect("protocol versions").with_root_certificates(roots);
        let tls = match &config.certificate {
            None => tls.with_no_client_auth(),
            Some((chain, key)) => {
                let chain =
                    CertificateDer::pem_slice_iter(chain).map(|item| item.expect("a certificate")).collect();
                let key = PrivateKeyDer::from_pem_slice(key).expect("a private key");
                tls.with_client_auth_cert(chain, key).expect("a key that fits its certificate")
            }
        };
        let token = config
            .token
            .as_ref()
            .map(|token| HeaderValue::try_from(format!("Bearer {token}")).expect("a token"));
        Tcp {
            address: address.parse().expect("an address with a port"),
            host: authority.host().to_owned(),
            tls: TlsConnector::from(Arc::new(tls)),
            authorization: token,
        }
    }

    async fn send(&self, mut request: http::Request<Full<Bytes>>) -> Result<http::Response<Body>, BoxError> {
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let stream = self.tls.connect(ServerName::try_from(self.host.clone())?, socket).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        request.headers_mut().insert(HOST, HeaderValue::try_from(self.address.to_string())?);
        if let Some(authorization) = &self.authorization {
            request.headers_mut().entry(AUTHORIZATION).or_insert(authorization.clone());
        }
        let response = sender.send_request(request).await?;
        // The connection lives as long as its last body.
        Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
    }
}
