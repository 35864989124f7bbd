//! A webhook server that allows every request after a random wait.

use std::sync::Arc;
use std::time::Duration;

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
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::Result;

/// The longest wait, in milliseconds.
const MAX_WAIT: u64 = 20;

/// A webhook server. Dropping the value stops the server.
pub(crate) struct Webhook {
    url: String,
    authority: String,
    task: JoinHandle<()>,
}

impl Webhook {
    /// Starts the server on a free port.
    ///
    /// # Errors
    /// No port is free, or no certificate can be made.
    pub(crate) async fn start() -> Result<Self> {
        let (tls, authority) = certificate()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        let task = tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let tls = tls.clone();
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(tcp).await else { return };
                    let server = auto::Builder::new(TokioExecutor::new());
                    // The client may end the connection at any time.
                    let _ = server.serve_connection(TokioIo::new(stream), service_fn(serve)).await;
                });
            }
        });
        Ok(Self { url, authority: STANDARD.encode(authority), task })
    }

    /// Returns the configuration that calls the webhook for the ConfigMaps of a namespace.
    pub(crate) fn configuration(&self, namespace: &str) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [{
                "name": "wait.siege.test",
                "clientConfig": {"url": self.url, "caBundle": self.authority},
                "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30
            }]
        })
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    request: http::Request<Incoming>,
) -> std::result::Result<http::Response<Full<Bytes>>, http::Error> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let review: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(fastrand::u64(..MAX_WAIT))).await;
    let response = json!({"uid": review["request"]["uid"], "allowed": true});
    let reply = json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
    http::Response::builder().header("content-type", "application/json").body(Full::from(reply.to_string()))
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
