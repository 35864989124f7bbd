//! A client that sends any bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Result;

/// How long a client waits for a reply: longer than the time limit of a request.
const PATIENCE: Duration = Duration::from_secs(90);

/// A user of a server.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    roots: Arc<RootCertStore>,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
    /// The user of the requests, if the owner of the certificate impersonates a user.
    user: Option<String>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) method: Method,
    /// The path, with the query.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
}

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) code: u16,
    pub(crate) body: Bytes,
    /// The time from the request to the end of the reply.
    pub(crate) took: Duration,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        let (content_type, accept) = ("application/json", "application/json");
        Self { method, path: path.into(), content_type, accept, body: Bytes::new() }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>, object: &Value) -> Self {
        Self::new(Method::POST, path).with("application/json", object.to_string())
    }

    /// Sets the body.
    pub(crate) fn with(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.content_type = content_type;
        self.body = body.into();
        self
    }
}

impl Reply {
    /// Returns the body as JSON; null for another body.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Client {
    /// Returns the user of a kubeconfig with a client certificate.
    ///
    /// # Errors
    /// The kubeconfig has no server on a numeric address, or no inline certificates.
    pub fn of_kubeconfig(text: &str) -> Result<Self> {
        let config = windlass_wire::from_yaml(text.as_bytes()).map_err(|error| error.to_string())?;
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        let server = cluster["server"].as_str().ok_or("the kubeconfig has no server")?;
        let address = server.strip_prefix("https://").ok_or("the server is not https")?.parse()?;
        let data = |holder: &Value, field: &str| -> Result<Vec<u8>> {
            let text = holder[field].as_str().ok_or_else(|| format!("the kubeconfig has no {field}"))?;
            Ok(STANDARD.decode(text)?)
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&data(cluster, "certificate-authority-data")?) {
            roots.add(certificate?)?;
        }
        let certificate = (data(user, "client-certificate-data")?, data(user, "client-key-data")?);
        Ok(Self { address, roots: Arc::new(roots), certificate: Some(certificate), user: None })
    }

    /// Returns a client without credentials.
    pub fn anonymous(&self) -> Self {
        Self { certificate: None, user: None, ..self.clone() }
    }

    /// Returns a client that impersonates `user`.
    pub fn as_user(&self, user: &str) -> Self {
        Self { user: Some(user.to_owned()), ..self.clone() }
    }

    /// Opens a TCP connection.
    pub(crate) async fn tcp(&self) -> Result<TcpStream> {
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// Opens a TLS connection for a protocol.
    pub(crate) async fn tls(&self, protocol: &str) -> Result<TlsStream<TcpStream>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let tls = tls.with_root_certificates(Arc::clone(&self.roots));
        let mut tls = match &self.certificate {
            Some((chain, key)) => {
                let chain = CertificateDer::pem_slice_iter(chain).collect::<std::result::Result<_, _>>()?;
                tls.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key)?)?
            }
            None => tls.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let name = ServerName::from(self.address.ip());
        Ok(TlsConnector::from(Arc::new(tls)).connect(name, self.tcp().await?).await?)
    }

    /// Opens an HTTP/2 connection.
    pub async fn connect(&self) -> Result<Connection> {
        let stream = TokioIo::new(self.tls("h2").await?);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection { sender, task, client: self.clone() })
    }

    /// Sends a request on a new connection.
    pub async fn send(&self, call: Call) -> Result<Reply> {
        self.connect().await?.send(call).await
    }
}

/// An HTTP/2 connection. Dropping the value closes the connection.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
    client: Client,
}

impl Connection {
    /// Sends a request, and returns the head of the reply.
    pub async fn begin(&self, call: Call) -> Result<Response<Incoming>> {
        let Call { method, path, content_type, accept, body } = call;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.client.address))
            .header("content-type", content_type)
            .header("accept", accept)
            .header("user-agent", "siege/1");
        if let Some(user) = &self.client.user {
            request = request.header("impersonate-user", user);
        }
        let reply = self.sender.clone().send_request(request.body(Full::new(body))?);
        Ok(tokio::time::timeout(PATIENCE, reply).await.map_err(|_| "no reply in time")??)
    }

    /// Sends a request, and receives the reply.
    pub async fn send(&self, call: Call) -> Result<Reply> {
        let start = Instant::now();
        let (head, body) = self.begin(call).await?.into_parts();
        let body =
            tokio::time::timeout(PATIENCE, body.collect()).await.map_err(|_| "the reply does not end")?;
        let body = body?.to_bytes();
        Ok(Reply { code: head.status.as_u16(), body, took: start.elapsed() })
    }

    /// Closes the connection without a word.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}
