//! HTTPS calls of webhooks, for admission and conversion, and connections to services.
//!
//! Errors have the words of kube-apiserver's HTTP client, because clients see the errors.

mod connect;
mod endpoint;
mod roots;
mod service;
mod trust;

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use serde_json::Value;
use windlass_schema::go_quote;

use self::connect::ConnectError;
pub(crate) use self::connect::{Connector, connect_unverified};
pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::service::{Backend, ready_endpoint};
pub(crate) use self::trust::ClientIdentity;
use crate::network::PodNetwork;
use crate::store::Store;

/// The number of endpoints with kept connections.
const MAX_CLIENTS: usize = 200;
/// The number of idle connections that are kept for an endpoint.
const MAX_IDLE: usize = 25;
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How often a call is repeated that a webhook asks to send later.
const MAX_RETRIES: usize = 10;
/// The part of an unexpected reply that an error quotes, in bytes.
const MAX_QUOTED: usize = 2048;

type Client = legacy::Client<Connector, Full<Bytes>>;

/// The HTTP clients of a server, for each recently called endpoint.
pub(crate) struct Clients {
    store: Arc<Store>,
    network: PodNetwork,
    /// The most recently used in front.
    recent: Mutex<VecDeque<(Arc<str>, Client)>>,
}

impl Clients {
    /// Creates clients that look up services in `store`, and connect to pods through `network`.
    pub(crate) fn new(store: Arc<Store>, network: PodNetwork) -> Self {
        Self { store, network, recent: Mutex::default() }
    }

    /// Posts JSON and returns the body of the reply, of at most `max_reply` bytes. Redirects are not followed. A call that the
    /// webhook asks to send later, by a 429 or 5xx with `Retry-After`, is repeated.
    ///
    /// # Errors
    ///
    /// There is no reply within `timeout`, or the reply is not a success.
    pub(crate) async fn post(
        &self,
        endpoint: &Endpoint,
        body: Bytes,
        timeout: Duration,
        max_reply: usize,
    ) -> Result<Bytes, String> {
        let uri = endpoint.uri(timeout)?;
        let in_post = |why: String| format!("Post {}: {why}", go_quote(&uri.to_string()));
        let request = || {
            Request::post(uri.clone())
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json, */*")
                .header(header::USER_AGENT, "kube-apiserver-admission")
                .body(Full::new(body.clone()))
                .map_err(|error| error.to_string())
        };
        let call = async {
            let client = self.client(endpoint).await.map_err(&in_post)?;
            let mut attempts = 0;
            let (head, body) = loop {
                let reply = client.request(request()?).await.map_err(|error| in_post(explain(&error)))?;
                attempts += 1;
                match retry_after(reply.status(), reply.headers()) {
                    Some(wait) if attempts <= MAX_RETRIES => tokio::time::sleep(wait).await,
                    _ => break reply.into_parts(),
                }
            };
            let body = read(body, max_reply).await.map_err(|why| {
                format!("unexpected error when reading response body. Please retry. Original error: {why}")
            })?;
            Ok((head, body))
        };
        let done = tokio::time::timeout(timeout, call).await;
        let (head, body) = done.unwrap_or_else(|_| Err(in_post("context deadline exceeded".to_owned())))?;
        if head.status.is_success() { Ok(body) } else { Err(refusal(head.status, &head.headers, &body)) }
    }

    async fn client(&self, endpoint: &Endpoint) -> Result<Client, String> {
        if let Some(known) = self.known(endpoint) {
            return Ok(known);
        }
        let connector = Connector::new(endpoint, Arc::clone(&self.store), self.network.clone(), None).await?;
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(connector);
        let mut recent = self.recent.lock();
        recent.truncate(MAX_CLIENTS - 1);
        recent.push_front((Arc::clone(endpoint.id()), client.clone()));
        Ok(client)
    }

    fn known(&self, endpoint: &Endpoint) -> Option<Client> {
        let mut recent = self.recent.lock();
        let at = recent.iter().position(|(id, _)| id == endpoint.id())?;
        let entry = recent.remove(at)?;
        let client = entry.1.clone();
        recent.push_front(entry);
        Some(client)
    }
}

/// Reads a body of at most `max` bytes into one buffer: pieces that are joined at the end take twice the memory. A body with a larger
/// `Content-Length` is not read.
async fn read(mut body: Incoming, max: usize) -> Result<Bytes, String> {
    let too_long = || "length limit exceeded".to_owned();
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > max {
        return Err(too_long());
    }
    let mut all = BytesMut::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| "unexpected EOF".to_owned())?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > max {
            return Err(too_long());
        }
        all.extend_from_slice(&data);
    }
    Ok(all.freeze())
}

/// Returns the time that a webhook asks to wait before a repeated call: `Retry-After` of a 429 or 5xx, in
/// seconds.
fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let is_retryable = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = headers.get(header::RETRY_AFTER).filter(|_| is_retryable)?.to_str().ok()?;
    seconds.parse::<i64>().ok().map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs()))
}

/// Explains a failed request in the words of Go's `net/http`.
pub(crate) fn explain(error: &legacy::Error) -> String {
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    let mut last = error.to_string();
    while let Some(found) = cause {
        if let Some(connecting) = found.downcast_ref::<ConnectError>() {
            return connecting.to_string();
        }
        if found.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
            return "EOF".to_owned();
        }
        if found.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
        {
            return "EOF".to_owned();
        }
        last = found.to_string();
        cause = found.source();
    }
    last
}

/// Describes a reply that is not a success: by the `Status` in the body, or else by the code.
fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    failure_in(body).unwrap_or_else(|| refusal_by_code(status, headers, body))
}

/// Returns the message of a `Status` about a failure.
fn failure_in(body: &[u8]) -> Option<String> {
    let found: Value = serde_json::from_slice(body).ok()?;
    let is_failure = found["kind"] == "Status" && found["apiVersion"] == "v1" && found["status"] == "Failure";
    is_failure.then(|| found["message"].as_str().unwrap_or_default().to_owned())
}

fn refusal_by_code(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let is_text = content_type.is_none_or(|value| value.starts_with("text/"));
    let quoted = String::from_utf8_lossy(body.get(..MAX_QUOTED).unwrap_or(body));
    let message = if is_text { quoted.trim() } else { "unknown" };
    match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => message.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 if message.is_empty() || message == "unknown" => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        406 => message.to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        code if code >= 500 => {
            format!("an error on the server ({}) has prevented the request from succeeding", go_quote(message))
        }
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}
