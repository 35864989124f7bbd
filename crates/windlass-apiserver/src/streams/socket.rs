//! A WebSocket and the channels: the shell around [`channel`](super::channel).

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::channel::{Received, Version};
use super::conversation::Limits;
use super::outlet::{Packet, Piece};
use crate::nodes::Connection;

/// The longest message of a client.
const MAX_MESSAGE: usize = 8 << 20;
/// The bytes that are read at once.
const READ: usize = 64 << 10;

/// The receiving half.
pub(super) type Receiver = SplitStream<WebSocketStream<Connection>>;
/// The sending half.
pub(super) type Sender = SplitSink<WebSocketStream<Connection>, Message>;

/// Begins to speak WebSocket, after the handshake.
pub(super) async fn open(connection: Connection) -> (Sender, Receiver) {
    let limits = WebSocketConfig::default()
        .read_buffer_size(READ)
        .write_buffer_size(0)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(limits)).await.split()
}

/// Makes the message that ends a connection. Go's clients take an end without a status for an error.
pub(super) fn normal_close() -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() }))
}

/// Reads messages until the client leaves. `inlets` are the channels that take bytes, by number.
pub(super) async fn read(
    mut messages: Receiver,
    version: Version,
    mut inlets: Vec<Option<mpsc::Sender<Piece>>>,
    limits: Limits,
) {
    while let Some(Ok(message)) = messages.next().await {
        limits.touch();
        let bytes: Bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => text.into(),
            Message::Close(_) => return,
            _ => continue,
        };
        match version.read(bytes) {
            Received::Data(channel, bytes) => {
                if let Some(Some(inlet)) = inlets.get(usize::from(channel)) {
                    // The program may take no more bytes.
                    let _ = inlet.send(Piece { bytes, permit: None }).await;
                }
            }
            Received::Closed(channel) => {
                if let Some(inlet) = inlets.get_mut(usize::from(channel)) {
                    *inlet = None;
                }
            }
            Received::Nothing => {}
        }
    }
}

/// Writes messages until all outlets are dropped, and then closes the WebSocket.
pub(super) async fn write(mut messages: Sender, mut packets: mpsc::Receiver<Packet>, limits: Limits) {
    while let Some(packet) = packets.recv().await {
        let message = match packet {
            Packet::Binary(bytes) => Message::Binary(bytes),
            Packet::Text(text) => Message::Text(text.into()),
        };
        if messages.feed(message).await.is_err() {
            return;
        }
        if packets.is_empty() && messages.flush().await.is_err() {
            return;
        }
        limits.touch();
    }
    let _ = messages.send(normal_close()).await;
}
