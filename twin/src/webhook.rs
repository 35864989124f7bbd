//! The webhook server of a run: HTTPS on 127.0.0.1, with a self-signed certificate. A response depends only
//! on the path and the review.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertificateParams, Issuer, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// Stands for the URL of the webhook server in scripts.
pub(crate) const URL: &str = "https://twin00-webhook";
/// Stands for the `caBundle` of the webhook server in scripts.
pub(crate) const AUTHORITY: &str = "dHdpbjAwLWF1dGhvcml0eQ==";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A webhook server. Dropping the value stops the server.
pub(crate) struct Webhook {
    pub(crate) url: String,
    /// The value of `caBundle`.
    pub(crate) authority: String,
    task: AbortHandle,
}

impl Webhook {
    pub(crate) async fn start() -> Result<Self> {
        let (tls, authority) = certificate()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        let task = tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let tls = tls.clone();
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(tcp).await else { return };
                    let builder = auto::Builder::new(TokioExecutor::new());
                    // The client may end the connection at any time.
                    let _ = builder.serve_connection(TokioIo::new(stream), service_fn(serve)).await;
                });
            }
        });
        Ok(Webhook { url, authority: STANDARD.encode(authority), task: task.abort_handle() })
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
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let review: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    let (code, body) = match path.as_str() {
        "/error" => (500, "broken".to_owned()),
        "/garbage" => (200, "no JSON".to_owned()),
        _ => (200, reply(&path, &review).to_string()),
    };
    http::Response::builder()
        .status(code)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::from(body))
}

/// Returns the review that answers a review.
fn reply(path: &str, review: &Value) -> Value {
    let request = &review["request"];
    let mut response = match path {
        "/convert" => converted(request),
        "/convert-error" => {
            json!({"result": {"status": "Failure", "message": "not convertible"}, "convertedObjects": []})
        }
        _ => admitted(path, request),
    };
    response["uid"] = request["uid"].clone();
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

/// Converts objects between versions that differ only in name.
fn converted(request: &Value) -> Value {
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().into_iter().flatten() {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
    }
    json!({"result": {"status": "Success"}, "convertedObjects": objects})
}

fn admitted(path: &str, request: &Value) -> Value {
    let is_x = request["name"].as_str().is_some_and(|name| name.ends_with('x'));
    match path {
        "/deny" => json!({"allowed": false}),
        "/deny-x" if is_x => {
            json!({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": "x may not be"}})
        }
        "/warn" => {
            let operation = request["operation"].as_str().unwrap_or_default();
            json!({"allowed": true, "warnings": [format!("seen: {operation}"), "careful"]})
        }
        "/label" => patched(&label(request)),
        "/no-patch" => patched(&json!([{"op": "remove", "path": "/metadata/labels/nowhere"}])),
        "/rename" => patched(&json!([{"op": "replace", "path": "/metadata/name", "value": "other"}])),
        _ => json!({"allowed": true}),
    }
}

fn patched(patch: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())})
}

/// A patch that labels the object. A deletion has none.
fn label(request: &Value) -> Value {
    let object = &request["object"];
    if !object["metadata"].is_object() {
        json!([])
    } else if object["metadata"]["labels"].is_object() {
        json!([{"op": "add", "path": "/metadata/labels/hooked", "value": "yes"}])
    } else {
        json!([{"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}}])
    }
}

fn certificate() -> Result<(TlsAcceptor, String)> {
    let mut authority = CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let mut params = CertificateParams::new(["localhost".to_owned()])?;
    params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &Issuer::new(authority, authority_key))?;
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], der)?;
    Ok((TlsAcceptor::from(Arc::new(config)), authority_pem))
}
