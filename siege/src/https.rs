//! An HTTPS server on 127.0.0.1 with a certificate of its own, for webhooks.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::Result;

/// An HTTPS server. Dropping the value stops the server.
#[derive(Debug)]
pub struct HttpsServer {
    /// The URL of the server, without a path.
    pub url: String,
    /// The certificate of the authority: a value of `caBundle`.
    pub authority: String,
    task: JoinHandle<()>,
}

impl HttpsServer {
    /// Starts a server on a free port. `answer` gets the path and the JSON of a request (null for a request without JSON), and returns the status code and
    /// the JSON of the response.
    ///
    /// # Errors
    /// No port is free, or no certificate can be made.
    pub async fn start<F, A>(answer: F) -> Result<Self>
    where
        F: Fn(String, Value) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = (u16, Bytes)> + Send + 'static,
    {
        let (tls, authority) = certificate()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        let task = tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (tls, answer) = (tls.clone(), answer.clone());
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(tcp).await else { return };
                    let service = service_fn(move |request| respond(request, answer.clone()));
                    let server = auto::Builder::new(TokioExecutor::new());
                    // The client may end the connection at any time.
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { url, authority: STANDARD.encode(authority), task })
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn respond<F, A>(
    request: http::Request<Incoming>,
    answer: F,
) -> std::result::Result<http::Response<Full<Bytes>>, http::Error>
where
    F: Fn(String, Value) -> A,
    A: Future<Output = (u16, Bytes)>,
{
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let (code, body) =
        answer(path, serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default()).await;
    let response =
        http::Response::builder().status(code).header(http::header::CONTENT_TYPE, "application/json");
    response.body(Full::from(body))
}

/// Makes a certificate for 127.0.0.1, and the certificate of the authority in PEM.
fn certificate() -> Result<(TlsAcceptor, String)> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let mut params = CertificateParams::new(["localhost".to_owned()])?;
    params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &Issuer::new(authority, authority_key))?;
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], der)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), authority_pem))
}
