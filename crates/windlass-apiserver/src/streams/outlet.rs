//! The sending end of a stream to the client.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::spdy::data_head;

/// The bytes before the data in a buffer, for the head of a frame.
const ROOM: usize = 8;
/// The largest amount of data in a frame.
const PIECE: usize = 32 << 10;
/// The number of frames that wait for the client. A client that does not read costs these frames, and a frame
/// for each stream.
const WAITING: usize = 1;

/// Bytes of a client, on the way to a program.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    /// The share of the memory that the connection's pieces may take.
    #[expect(dead_code, reason = "the permit is given back when the piece is dropped")]
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

/// A frame on the way to the client.
#[derive(Debug)]
pub(super) enum Packet {
    Binary(Bytes),
    Text(String),
}

/// Makes the queue of a connection. All outlets of the connection send to the queue.
pub(super) fn queue() -> (mpsc::Sender<Packet>, mpsc::Receiver<Packet>) {
    mpsc::channel(WAITING)
}

/// The identity of a stream in frames.
#[derive(Clone, Copy, Debug)]
pub(super) enum Address {
    /// A channel of a WebSocket with binary messages.
    Channel(u8),
    /// A channel of a WebSocket with messages of text in base64.
    Base64(u8),
    /// A stream of SPDY.
    Spdy(u32),
}

/// The sending end of a stream to the client.
#[derive(Debug)]
pub(super) struct Outlet {
    address: Address,
    queue: mpsc::Sender<Packet>,
    is_finished: AtomicBool,
}

/// The client has left.
#[derive(Debug)]
pub(super) struct Gone;

impl Outlet {
    pub(super) fn new(address: Address, queue: mpsc::Sender<Packet>) -> Self {
        Self { address, queue, is_finished: AtomicBool::new(false) }
    }

    /// Sends bytes. An empty message tells the client of a WebSocket that the stream is there.
    pub(super) async fn send(&self, bytes: &[u8]) -> Result<(), Gone> {
        let mut buffer = BytesMut::with_capacity(ROOM + bytes.len());
        buffer.resize(ROOM, 0);
        buffer.extend_from_slice(bytes);
        self.send_buffer(buffer).await
    }

    /// Sends the bytes of a buffer, after [`ROOM`] bytes for the head.
    pub(super) async fn send_buffer(&self, mut buffer: BytesMut) -> Result<(), Gone> {
        let packet = match self.address {
            Address::Channel(number) => {
                buffer.advance(ROOM - 1);
                buffer[0] = number;
                Packet::Binary(buffer.freeze())
            }
            Address::Base64(number) => {
                let mut text = number.to_string();
                STANDARD.encode_string(&buffer[ROOM..], &mut text);
                Packet::Text(text)
            }
            Address::Spdy(id) => {
                let head = data_head(id, false, buffer.len() - ROOM);
                buffer[..ROOM].copy_from_slice(&head);
                Packet::Binary(buffer.freeze())
            }
        };
        self.queue.send(packet).await.map_err(|_| Gone)
    }

    /// Sends the end of the stream to the client, once. A channel of a WebSocket has no end; the connection
    /// ends instead.
    pub(super) async fn finish(&self) -> Result<(), Gone> {
        let Address::Spdy(id) = self.address else { return Ok(()) };
        if self.is_finished.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let head = data_head(id, true, 0);
        self.queue.send(Packet::Binary(Bytes::copy_from_slice(&head))).await.map_err(|_| Gone)
    }

    /// Waits until `reader` has bytes, and reads the bytes into a buffer for
    /// [`send_buffer`](Self::send_buffer). Returns `None` at the end.
    ///
    /// No byte is lost if the caller stops waiting.
    pub(super) async fn fill(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<BytesMut>> {
        let mut buffer = BytesMut::with_capacity(ROOM + PIECE);
        buffer.resize(ROOM, 0);
        let read = reader.read_buf(&mut buffer).await?;
        Ok((read > 0).then_some(buffer))
    }
}
