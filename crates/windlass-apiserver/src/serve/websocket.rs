//! Watches and logs over WebSocket, for browsers and fabric8's client for Java.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::auth::subprotocol;
use crate::body::{Body, Messages};

/// The largest message that a client may send. All messages are ignored.
const MESSAGE_LIMIT: usize = 64 * 1024;

/// The media type of a watch in protobuf.
const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// The largest message of a log.
const LOG_MESSAGE: usize = 2048;

/// The subprotocol of a log with messages of text in base64.
const BASE64: &str = "base64.binary.k8s.io";
/// The subprotocol of a log with messages of bytes. The default without a subprotocol.
const BINARY: &str = "binary.k8s.io";

/// The wish of a client to go on over WebSocket.
pub(super) struct WebSocket {
    accept: String,
    /// The subprotocols that the client offers.
    offered: Vec<String>,
}

/// The format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A text message for each event of a watch.
    Events,
    /// A binary message for each event of a watch in protobuf.
    Messages,
    /// A log is sent in binary messages.
    Bytes,
    /// A log is sent in text messages, in base64.
    Base64,
}

impl WebSocket {
    /// Parses the WebSocket request, if the request asks for a WebSocket.
    pub(super) fn requested(request: &Request<Incoming>) -> Option<Self> {
        let headers = request.headers();
        let accept = derive_accept_key(
            headers.get(SEC_WEBSOCKET_KEY).filter(|_| subprotocol::is_websocket(headers))?.as_bytes(),
        );
        let offered = subprotocol::offered(headers).into_iter().map(str::to_owned).collect();
        Some(Self { accept, offered })
    }

    /// Sends the events of a watch, or a log, over the WebSocket. Any other response is returned unchanged.
    ///
    /// A watch has no subprotocols, and answers with the offered subprotocol; several offers are 400. A log
    /// answers 403 if the log knows none of the offered subprotocols. `spawn` runs the conversation over the WebSocket.
    pub(super) fn answer(
        self,
        response: Response<Body>,
        connection: OnUpgrade,
        spawn: impl FnOnce(BoxFuture<'static, ()>),
    ) -> Response<Body> {
        let Some(sent_as) = response.extensions().get::<Messages>().copied() else { return response };
        if response.status() != StatusCode::OK || response.headers().contains_key(CONTENT_ENCODING) {
            return response;
        }
        let is_protobuf = response.headers().get(CONTENT_TYPE).is_some_and(|found| found == PROTOBUF_WATCH);
        let events = if is_protobuf { Format::Messages } else { Format::Events };
        let chosen = match sent_as {
            Messages::Bytes => self.choose_for_log(),
            Messages::Events => self.choose_for_watch(events),
        };
        let (protocol, format) = match chosen {
            Ok(chosen) => chosen,
            Err(status) => return empty(status),
        };
        let Ok(accept) = HeaderValue::try_from(self.accept) else { return response };
        let (mut head, body) = response.into_parts();
        head.status = StatusCode::SWITCHING_PROTOCOLS;
        head.headers.remove(CONTENT_TYPE);
        head.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        head.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        head.headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(protocol) = protocol.and_then(|protocol| HeaderValue::try_from(protocol).ok()) {
            head.headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        spawn(Box::pin(async move {
            if let Err(error) = send(connection, body, format).await {
                tracing::debug!(%error, "a WebSocket ended early");
            }
        }));
        Response::from_parts(head, Body::empty())
    }

    fn choose_for_watch(&self, events: Format) -> Result<(Option<String>, Format), StatusCode> {
        match self.offered.as_slice() {
            [] => Ok((None, events)),
            [only] => Ok((Some(only.clone()), events)),
            _ => Err(StatusCode::BAD_REQUEST),
        }
    }

    fn choose_for_log(&self) -> Result<(Option<String>, Format), StatusCode> {
        if self.offered.is_empty() {
            return Ok((None, Format::Bytes));
        }
        let known = self.offered.iter().find_map(|offered| match offered.as_str() {
            BINARY => Some(Format::Bytes),
            BASE64 => Some(Format::Base64),
            _ => None,
        });
        let name = |format| if format == Format::Base64 { BASE64 } else { BINARY };
        known.map(|format| (Some(name(format).to_owned()), format)).ok_or(StatusCode::FORBIDDEN)
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Sends the body as messages, until it ends or the client leaves.
async fn send(connection: OnUpgrade, mut body: Body, format: Format) -> Result<(), Error> {
    let Ok(connection) = connection.await else { return Ok(()) };
    let limits =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_LIMIT)).max_frame_size(Some(MESSAGE_LIMIT));
    let io = TokioIo::new(connection);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits)).await;
    let mut begun = Vec::new();
    loop {
        let chunk = tokio::select! {
            received = socket.next() => match received {
                Some(received) => {
                    received?;
                    continue;
                }
                None => return Ok(()),
            },
            frame = body.frame() => match frame {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                _ => return socket.close(None).await,
            },
        };
        let Some(chunk) = whole(&mut begun, chunk, format) else { continue };
        for message in messages(&chunk, format) {
            socket.feed(message?).await?;
        }
        socket.flush().await?;
    }
}

/// Collects the chunks of a large event, of which `begun` has the start. Returns whole events.
fn whole(begun: &mut Vec<u8>, chunk: Bytes, format: Format) -> Option<Bytes> {
    let is_end = format != Format::Events || chunk.ends_with(b"\n");
    if begun.is_empty() && is_end {
        return Some(chunk);
    }
    begun.extend_from_slice(&chunk);
    is_end.then(|| std::mem::take(begun).into())
}

/// Splits a chunk into messages. A chunk of a watch consists of whole events.
fn messages(chunk: &Bytes, format: Format) -> Vec<Result<Message, Error>> {
    match format {
        Format::Events => lines(chunk).map(|event| Ok(Message::Text(Utf8Bytes::try_from(event)?))).collect(),
        Format::Messages => framed(chunk).into_iter().map(|event| Ok(Message::Binary(event))).collect(),
        Format::Bytes => {
            chunk.chunks(LOG_MESSAGE).map(|part| Ok(Message::Binary(chunk.slice_ref(part)))).collect()
        }
        Format::Base64 => {
            chunk.chunks(LOG_MESSAGE).map(|part| Ok(Message::Text(STANDARD.encode(part).into()))).collect()
        }
    }
}

/// Splits a chunk of events with lengths in front. A WebSocket has the lengths itself.
fn framed(chunk: &Bytes) -> Vec<Bytes> {
    let mut events = Vec::new();
    let mut rest = &chunk[..];
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((event, next)) = after.split_at_checked(length) else { break };
        events.push(chunk.slice_ref(event));
        rest = next;
    }
    events
}

/// Splits a chunk after each newline. A chunk consists of whole events.
fn lines(chunk: &Bytes) -> impl Iterator<Item = Bytes> {
    chunk.split_inclusive(|byte| *byte == b'\n').map(|line| chunk.slice_ref(line))
}
