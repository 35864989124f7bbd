//! HTTP requests with JSON, in a limited time.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Error;

/// The largest body of a response, in bytes.
const LARGEST: usize = 16 << 20;

/// Sends requests to a server.
#[derive(Clone)]
pub(super) struct Transport {
    server: &'static str,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
}

/// A response with a success status.
pub(super) struct Reply {
    pub(super) headers: HeaderMap,
    server: &'static str,
    body: Bytes,
}

impl Transport {
    pub(super) fn new(server: &'static str, timeout: Duration) -> Result<Self, Error> {
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls_provider())
            .map_err(|error| Error::Config(format!("no root certificates for TLS: {error}")))?
            .https_or_http()
            .enable_http1()
            .build();
        // A connection that the server has closed must not be used again for a POST.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(8).build(connector);
        Ok(Self { server, client, timeout })
    }

    /// Sends a request and returns a response with a success status.
    pub(super) async fn send(
        &self,
        method: Method,
        uri: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Reply, Error> {
        let uri: Uri = uri.parse().map_err(|_| Error::Config(format!("{uri:?} is not a URL")))?;
        let mut request =
            Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
        if let Some(token) = token {
            request = request.header("X-Auth-Token", token);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let bytes = body.map_or_else(Bytes::new, |body| body.to_string().into());
        let request = request.body(Full::new(bytes)).map_err(|error| Error::Config(error.to_string()))?;
        let exchange = tokio::time::timeout(self.timeout, self.exchange(request)).await;
        exchange.unwrap_or_else(|_| Err(self.unreachable(format!("not within {:?}", self.timeout))))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Reply, Error> {
        let response = self.client.request(request).await.map_err(|error| self.unreachable(chain(&error)))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|error| self.unreachable(error.to_string()))?.to_bytes();
        if parts.status.is_success() {
            return Ok(Reply { headers: parts.headers, server: self.server, body });
        }
        Err(self.refused(parts.status, &body))
    }

    fn unreachable(&self, reason: String) -> Error {
        Error::Unreachable { server: self.server, reason }
    }

    /// Reads an error: `{"NeutronError": {"type", "message"}}`, or `{"error": {"title", "message"}}` of Keystone.
    fn refused(&self, status: StatusCode, body: &[u8]) -> Error {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = if body["NeutronError"].is_null() { &body["error"] } else { &body["NeutronError"] };
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        let usual = || status.canonical_reason().unwrap_or("an error").to_owned();
        let message = text("message").unwrap_or_else(usual);
        if status == StatusCode::UNAUTHORIZED {
            return Error::Unauthorized { server: self.server, message };
        }
        let kind = text("type").or_else(|| text("title")).unwrap_or_else(usual);
        Error::Refused { server: self.server, code: status.as_u16(), kind, message }
    }
}

impl Reply {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Error::Undecodable { server: self.server, reason: error.to_string() })
    }
}

/// Returns the TLS library that kube uses.
fn rustls_provider() -> rustls::crypto::CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// Returns an error together with the causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
