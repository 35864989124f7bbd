//! A webhook server of a test: HTTPS on 127.0.0.1, with a certificate of its own.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertificateParams, Issuer, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;

use super::Api;

/// The answer of a webhook.
pub(crate) enum Answer {
    /// This `response` of a review, to which the uid is added.
    Response(Value),
    /// These objects, as the result of a conversion.
    Converted(Vec<Value>),
    /// These objects, after as many calls are there at the same time.
    Together(Arc<Barrier>, Vec<Value>),
    /// Exactly this.
    Raw { code: u16, content_type: &'static str, body: String },
    /// 429, to be sent again after so many seconds.
    Later(u32),
    /// 302, to this address.
    Redirect(&'static str),
    /// 200, with this part of a body, after which the connection breaks.
    Broken(&'static str),
    /// Nothing, ever.
    Never,
}

impl Answer {
    pub(crate) fn allow() -> Self {
        Self::Response(json!({"allowed": true}))
    }

    pub(crate) fn deny(status: Value) -> Self {
        Self::Response(json!({"allowed": false, "status": status}))
    }

    /// Allows the request, and changes its object by a JSON patch.
    pub(crate) fn patch(patch: Value) -> Self {
        let patch = STANDARD.encode(patch.to_string());
        Self::Response(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
    }
}

type Handler = dyn Fn(&str, &Value) -> Answer + Send + Sync;

/// A webhook server. The server stops with the test's runtime.
pub(crate) struct Webhook {
    address: SocketAddr,
    certificate_pem: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Webhook {
    /// Starts a server that answers reviews by `handler`, which gets the path and the review.
    pub(crate) async fn start(handler: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_for("webhook.test", handler).await
    }

    /// The same, with a certificate for `name`, `localhost` and 127.0.0.1.
    pub(crate) async fn start_for(
        name: &str,
        handler: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let (tls, certificate_pem) = certificate(name);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::default());
        let (handler, record): (Arc<Handler>, _) = (Arc::new(handler), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (tls, handler, record) = (tls.clone(), Arc::clone(&handler), Arc::clone(&record));
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(tcp).await else { return };
                    let service =
                        service_fn(move |request| answer(request, Arc::clone(&handler), Arc::clone(&record)));
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Webhook { address, certificate_pem, seen }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The `clientConfig` for a path of this server.
    pub(crate) fn at(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.ca_bundle()})
    }

    pub(crate) fn ca_bundle(&self) -> String {
        STANDARD.encode(&self.certificate_pem)
    }

    /// The reviews that were sent to a path.
    pub(crate) fn seen(&self, path: &str) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(at, _)| at == path).map(|(_, review)| review.clone()).collect()
    }

    /// The paths that were called, in order.
    pub(crate) fn paths(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|(path, _)| path.clone()).filter(|path| path != READY).collect()
    }

    /// Creates a configuration, `mutating` or `validating`, and waits until it is effective.
    ///
    /// Each webhook is completed, and is called only for the test's own namespace unless it says otherwise.
    pub(crate) async fn configure(&self, api: &Api, kind: &str, name: &str, webhooks: Value) {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
        let name = format!("{name}-{}", api.id);
        let mut configuration = json!({"metadata": {"name": name}, "webhooks": []});
        let webhooks = webhooks.as_array().unwrap().iter().map(|webhook| self.completed(api, webhook));
        let all: Vec<Value> = webhooks.chain([self.ready_probe(&name)]).collect();
        configuration["webhooks"] = all.into();
        api.post(&path, configuration).await.is(201);
        api.discard(format!("{path}/{name}"));
        self.wait_until_ready(&name, api).await;
    }

    fn completed(&self, api: &Api, webhook: &Value) -> Value {
        let mut completed = json!({
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [format!("ns-{}", api.id)]}
            ]},
        });
        for (field, value) in webhook.as_object().unwrap() {
            completed[field] = value.clone();
        }
        if let Some(path) = webhook["clientConfig"].as_str() {
            completed["clientConfig"] = self.at(path);
        }
        completed
    }

    /// A webhook that is called only for objects with a label of its own.
    fn ready_probe(&self, name: &str) -> Value {
        json!({
            "name": "ready.webhook.test",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": self.at(READY),
            "rules": [rule("CREATE", "", "v1", "configmaps")],
            "objectSelector": {"matchLabels": {"ready": name}},
        })
    }

    async fn wait_until_ready(&self, name: &str, api: &Api) {
        let probe = json!({"metadata": {"name": "probe", "labels": {"ready": name}}});
        let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
        let start = std::time::Instant::now();
        let before = self.seen(READY).len();
        while self.seen(READY).len() == before {
            assert!(start.elapsed() < super::deadline(), "the configuration {name} is not used");
            api.post(path, probe.clone()).await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

const READY: &str = "/ready";

/// A rule for one operation on one resource.
pub(crate) fn rule(operation: &str, group: &str, version: &str, resource: &str) -> Value {
    json!({
        "operations": [operation], "apiGroups": [group], "apiVersions": [version], "resources": [resource]
    })
}

async fn answer(
    request: http::Request<Incoming>,
    handler: Arc<Handler>,
    record: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<http::Response<UnsyncBoxBody<Bytes, io::Error>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let review: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    record.lock().unwrap().push((path.clone(), review.clone()));
    let answer = if path == READY { Answer::allow() } else { handler(&path, &review) };
    let wait = if let Answer::Later(seconds) = answer { Some(seconds) } else { None };
    let location = if let Answer::Redirect(location) = answer { Some(location) } else { None };
    if let Answer::Broken(part) = answer {
        // The part is sent while the rest is pending.
        let rest = async {
            tokio::task::yield_now().await;
            Err(io::Error::other("broken"))
        };
        let parts = stream::iter([Ok(Frame::data(part.into()))]).chain(stream::once(rest));
        return Ok(http::Response::new(StreamBody::new(parts).boxed_unsync()));
    }
    if let Answer::Together(barrier, _) = &answer {
        barrier.wait().await;
    }
    let (code, content_type, body) = match answer {
        Answer::Converted(objects) | Answer::Together(_, objects) => {
            let response = json!({
                "uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects
            });
            let review = json!({
                "kind": review["kind"], "apiVersion": review["apiVersion"], "response": response,
            });
            (200, "application/json", review.to_string())
        }
        Answer::Response(mut response) => {
            response["uid"] = review["request"]["uid"].clone();
            let review = json!({
                "kind": review["kind"], "apiVersion": review["apiVersion"], "response": response,
            });
            (200, "application/json", review.to_string())
        }
        Answer::Raw { code, content_type, body } => {
            (code, content_type, body.replace("UID", review["request"]["uid"].as_str().unwrap_or_default()))
        }
        Answer::Later(_) => (429, "text/plain", "later".to_owned()),
        Answer::Redirect(_) => (302, "text/plain", String::new()),
        Answer::Broken(_) | Answer::Never => std::future::pending().await,
    };
    let mut response = http::Response::builder().status(code).header(CONTENT_TYPE, content_type);
    if let Some(seconds) = wait {
        response = response.header(RETRY_AFTER, seconds);
    }
    if let Some(location) = location {
        response = response.header(LOCATION, location);
    }
    let body = Full::from(body).map_err(|never| match never {});
    Ok(response.body(body.boxed_unsync()).unwrap())
}

fn certificate(name: &str) -> (TlsAcceptor, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let mut params = CertificateParams::new([name.to_owned(), "localhost".to_owned()]).unwrap();
    params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], der)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), authority_certificate.pem())
}
