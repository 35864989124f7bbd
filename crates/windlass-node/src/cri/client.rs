//! A client of the CRI: calls of gRPC over a Unix socket.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use prost::Message;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::RuntimeError;

/// The service of sandboxes and containers.
pub(super) const RUNTIME: &str = "runtime.v1.RuntimeService";
/// The service of images.
pub(super) const IMAGE: &str = "runtime.v1.ImageService";

/// The longest answer, in bytes, as kubelets have it.
const LONGEST: usize = 16 << 20;

/// The longest wait for an answer. Image pulls have another limit.
pub(super) const ANSWER: Duration = Duration::from_secs(120);

/// The length of a message's prefix in gRPC.
const PREFIX: usize = 5;

/// The codes of gRPC that this crate tells apart.
const DEADLINE_EXCEEDED: u32 = 4;
pub(super) const NOT_FOUND: u32 = 5;
const UNIMPLEMENTED: u32 = 12;
const UNAVAILABLE: u32 = 14;

/// A refusal of the container runtime, or a failure of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallError {
    /// The code of gRPC.
    pub(super) code: u32,
    /// The text of the container runtime.
    pub(super) message: String,
    method: &'static str,
}

impl CallError {
    /// Returns whether the container runtime has ended a command that took too long.
    pub(super) fn is_timeout(&self) -> bool {
        self.code == DEADLINE_EXCEEDED || self.message.contains("context deadline exceeded")
    }

    #[cfg(test)]
    pub(super) fn new(code: u32, message: &str, method: &'static str) -> Self {
        Self { code, message: message.to_owned(), method }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            UNAVAILABLE => {
                write!(f, "the container runtime did not answer {}: {}", self.method, self.message)
            }
            UNIMPLEMENTED => write!(
                f,
                "the container runtime does not offer {} of CRI v1 (containerd offers CRI v1 since 1.6): {}",
                self.method, self.message
            ),
            _ => f.write_str(&self.message),
        }
    }
}

impl From<CallError> for RuntimeError {
    fn from(error: CallError) -> Self {
        match error.code {
            UNIMPLEMENTED => Self::Unsupported(error.to_string()),
            _ => Self::Start(error.to_string()),
        }
    }
}

/// A client. One connection serves all calls, and is opened again after a failure.
pub(super) struct Client {
    socket: PathBuf,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Client {
    /// Creates a client of the socket at an endpoint: `unix:///run/containerd/containerd.sock`, or the path alone.
    pub(super) fn new(endpoint: &str) -> Result<Self, RuntimeError> {
        let path = endpoint.strip_prefix("unix://").unwrap_or(endpoint);
        if !path.starts_with('/') {
            return Err(RuntimeError::Unsupported(format!(
                "{endpoint:?} is no endpoint of a container runtime: write unix:///run/containerd/containerd.sock"
            )));
        }
        Ok(Self { socket: PathBuf::from(path), connection: Mutex::default() })
    }

    /// Calls a method of [`RUNTIME`].
    pub(super) async fn runtime<Q: Message, R: Message + Default>(
        &self,
        method: &'static str,
        request: &Q,
    ) -> Result<R, CallError> {
        self.call(RUNTIME, method, request, ANSWER).await
    }

    /// Calls a method of [`IMAGE`].
    pub(super) async fn image<Q: Message, R: Message + Default>(
        &self,
        method: &'static str,
        request: &Q,
    ) -> Result<R, CallError> {
        self.call(IMAGE, method, request, ANSWER).await
    }

    /// Calls a method. The answer must come before `limit`.
    pub(super) async fn call<Q: Message, R: Message + Default>(
        &self,
        service: &str,
        method: &'static str,
        request: &Q,
        limit: Duration,
    ) -> Result<R, CallError> {
        let failed = |message: String| CallError { code: UNAVAILABLE, message, method };
        let answered = timeout(limit, self.exchange(service, method, encoded(request))).await;
        let body = answered.unwrap_or_else(|_| Err(failed(format!("no answer within {limit:?}"))))?;
        R::decode(body).map_err(|error| failed(format!("the answer is no message of the CRI: {error}")))
    }

    async fn exchange(&self, service: &str, method: &'static str, body: Bytes) -> Result<Bytes, CallError> {
        let failed = |message: String| CallError { code: UNAVAILABLE, message, method };
        let mut sender = self.sender().await.map_err(failed)?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://localhost/{service}/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|error| failed(error.to_string()))?;
        let reply = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let (head, body) = reply.into_parts();
        if head.status != StatusCode::OK {
            return Err(failed(format!("the answer has the status {}", head.status)));
        }
        let body = Limited::new(body, LONGEST).collect().await.map_err(|error| failed(error.to_string()))?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        refusal(&head.headers, method).or_else(|| refusal(&trailers, method)).map_or(Ok(()), Err)?;
        decoded(body.to_bytes()).ok_or_else(|| failed("the answer is not one message of gRPC".into()))
    }

    /// Returns an open connection.
    async fn sender(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_mut()
            && !open.is_closed()
            && open.ready().await.is_ok()
        {
            return Ok(open.clone());
        }
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|error| format!("connect to {}: {error}", self.socket.display()))?;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new());
        let (sender, driver) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "the connection to the container runtime ended");
            }
        });
        Ok(connection.insert(sender).clone())
    }
}

/// Returns a request with the prefix of gRPC.
fn encoded(request: &impl Message) -> Bytes {
    let length = request.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    bytes.put_u8(0);
    bytes.put_u32(length as u32);
    request.encode_raw(&mut bytes);
    bytes.freeze()
}

/// Returns the message behind the prefix. An answer is one message, without compression.
fn decoded(mut body: Bytes) -> Option<Bytes> {
    let prefix: [u8; PREFIX] = body.get(..PREFIX)?.try_into().ok()?;
    let [0, length @ ..] = prefix else { return None };
    let message = body.split_off(PREFIX);
    (message.len() == u32::from_be_bytes(length) as usize).then_some(message)
}

/// Returns the refusal in headers or trailers.
fn refusal(headers: &HeaderMap, method: &'static str) -> Option<CallError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status")?.parse().unwrap_or(2) {
        0 => None,
        code => {
            let message = percent_decode_str(text("grpc-message").unwrap_or_default());
            Some(CallError { code, message: message.decode_utf8_lossy().into_owned(), method })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cri::message::Id;

    #[test]
    fn messages_have_the_prefix_of_grpc() {
        let bytes = encoded(&Id { id: "ab".into() });
        assert_eq!(bytes[..], [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        assert_eq!(Id::decode(decoded(bytes.clone()).unwrap()).unwrap().id, "ab");
        assert_eq!(decoded(bytes.slice(..8)), None);
        assert_eq!(decoded(Bytes::from_static(&[1, 0, 0, 0, 0])), None);
        assert_eq!(decoded(Bytes::new()), None);
    }

    #[test]
    fn a_refusal_has_the_text_of_the_container_runtime() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
        };
        assert_eq!(refusal(&headers(&[("grpc-status", "0")]), "M"), None);
        assert_eq!(refusal(&headers(&[]), "M"), None);
        let refused = refusal(&headers(&[("grpc-status", "5"), ("grpc-message", "no%20such%0Aimage")]), "M");
        let refused = refused.unwrap();
        assert_eq!((refused.code, refused.message.as_str()), (NOT_FOUND, "no such\nimage"));
    }

    #[test]
    fn an_endpoint_is_a_socket() {
        assert!(Client::new("unix:///run/containerd/containerd.sock").is_ok());
        assert!(Client::new("/run/crio/crio.sock").is_ok());
        for wrong in ["", "tcp://127.0.0.1:1234", "unix://run", "containerd.sock"] {
            assert!(Client::new(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_container_runtime_that_is_not_there_is_named() {
        let client = Client::new("unix:///missing/containerd.sock").unwrap();
        let error = client.runtime::<_, Id>("Version", &Id::default()).await.unwrap_err().to_string();
        assert!(error.contains("did not answer Version: connect to /missing/containerd.sock"), "{error}");
    }
}
