//! Watches over WebSocket, which fabric8's client for Java and browsers ask for.

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE,
};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::body::Body;

/// The largest message that a client may send. All of them are ignored.
const MESSAGE_LIMIT: usize = 64 * 1024;

/// The wish of a client to go on over WebSocket.
pub(super) struct WebSocket {
    connection: OnUpgrade,
    accept: String,
}

impl WebSocket {
    /// Takes the wish out of a request, if it has one.
    pub(super) fn requested(request: &mut Request<Incoming>) -> Option<Self> {
        let headers = request.headers();
        let asks = has_word(headers, &UPGRADE, "websocket") && has_word(headers, &CONNECTION, "upgrade");
        let accept = derive_accept_key(headers.get(SEC_WEBSOCKET_KEY).filter(|_| asks)?.as_bytes());
        Some(Self { connection: hyper::upgrade::on(request), accept })
    }

    /// Sends the events of a watch over the WebSocket. Any other response is returned unchanged.
    pub(super) fn answer(self, response: Response<Body>) -> Response<Body> {
        if response.status() != StatusCode::OK || !response.body().is_stream() {
            return response;
        }
        let Ok(accept) = HeaderValue::try_from(self.accept) else { return response };
        let (mut head, events) = response.into_parts();
        head.status = StatusCode::SWITCHING_PROTOCOLS;
        head.headers.remove(CONTENT_TYPE);
        head.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        head.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        head.headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        tokio::spawn(async move {
            if let Err(error) = send(self.connection, events).await {
                tracing::debug!(%error, "a WebSocket ended early");
            }
        });
        Response::from_parts(head, Body::empty())
    }
}

/// Sends each event as one text message, until the events end or the client leaves.
async fn send(connection: OnUpgrade, mut events: Body) -> Result<(), Error> {
    let Ok(connection) = connection.await else { return Ok(()) };
    let limits =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_LIMIT)).max_frame_size(Some(MESSAGE_LIMIT));
    let io = TokioIo::new(connection);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits)).await;
    loop {
        let chunk = tokio::select! {
            received = socket.next() => match received {
                Some(received) => {
                    received?;
                    continue;
                }
                None => return Ok(()),
            },
            frame = events.frame() => match frame {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                _ => return socket.close(None).await,
            },
        };
        for event in lines(&chunk) {
            socket.feed(Message::Text(Utf8Bytes::try_from(event)?)).await?;
        }
        socket.flush().await?;
    }
}

/// Splits a chunk after each newline. A chunk consists of whole events.
fn lines(chunk: &Bytes) -> impl Iterator<Item = Bytes> {
    chunk.split_inclusive(|byte| *byte == b'\n').map(|line| chunk.slice_ref(line))
}

/// Whether a header has a word in its comma-separated list, in any case.
fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
}
