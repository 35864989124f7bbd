//! A client that writes frames of HTTP/2 by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;

use crate::Result;
use crate::client::Client;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// An HTTP/2 connection without rules. The replies are read and dropped, unless the connection does not read.
pub(super) struct Frames {
    writer: WriteHalf<TlsStream<TcpStream>>,
    /// Kept open, and not read.
    _unread: Option<ReadHalf<TlsStream<TcpStream>>>,
    reader: Option<JoinHandle<()>>,
    is_closed: Arc<AtomicBool>,
    sent: usize,
    buffer: Vec<u8>,
}

impl Frames {
    /// Opens a connection. Without `reads`, the client reads nothing at all.
    pub(super) async fn open(client: &Client, reads: bool) -> Result<Self> {
        let (mut reader, writer) = tokio::io::split(client.tls("h2").await?);
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        let (reader, unread) = if reads {
            let read = async move {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(1..) = reader.read(&mut buffer).await {}
                closed.store(true, Ordering::Relaxed);
            };
            (Some(tokio::spawn(read)), None)
        } else {
            (None, Some(reader))
        };
        let mut frames = Self { writer, _unread: unread, reader, is_closed, sent: 0, buffer: Vec::new() };
        frames.buffer.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        Ok(frames)
    }

    /// Adds a frame to the buffer.
    pub(super) fn push(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        self.buffer.extend_from_slice(&length[1..]);
        self.buffer.extend_from_slice(&[kind, flags]);
        self.buffer.extend_from_slice(&stream.to_be_bytes());
        self.buffer.extend_from_slice(payload);
    }

    /// Sends the buffer. Returns false if the server has closed the connection, or takes no more.
    pub(super) async fn send(&mut self) -> bool {
        let bytes = std::mem::take(&mut self.buffer);
        self.sent += bytes.len();
        let write =
            async { self.writer.write_all(&bytes).await.is_ok() && self.writer.flush().await.is_ok() };
        let is_sent = tokio::time::timeout(std::time::Duration::from_secs(5), write).await;
        matches!(is_sent, Ok(true)) && !self.is_closed.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that the client has sent.
    pub(super) fn sent(&self) -> usize {
        self.sent + self.buffer.len()
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

/// Returns the fields of the head of a request, without compression.
pub(super) fn head(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "https"), (":authority", "x"), (":path", path)];
    let mut head = Vec::new();
    for (name, value) in fields.iter().chain(more) {
        head.push(0);
        text(&mut head, name);
        text(&mut head, value);
    }
    head
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number with a prefix of seven bits.
pub(super) fn number(out: &mut Vec<u8>, mut value: usize) {
    if value < 127 {
        return out.push(value as u8);
    }
    out.push(127);
    value -= 127;
    while value >= 128 {
        out.push((value % 128) as u8 | 128);
        value /= 128;
    }
    out.push(value as u8);
}
