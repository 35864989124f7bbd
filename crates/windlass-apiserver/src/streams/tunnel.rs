//! A stream of bytes inside of the binary messages of a WebSocket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::socket::{Receiver, Sender, normal_close};

/// The reading half.
pub(super) struct TunnelReader {
    messages: Receiver,
    /// The rest of the last message.
    rest: Bytes,
}

/// The writing half.
pub(super) struct TunnelWriter {
    messages: Sender,
    is_closed: bool,
}

/// Makes a stream of bytes of a WebSocket.
pub(super) fn tunnel((sender, messages): (Sender, Receiver)) -> (TunnelReader, TunnelWriter) {
    (TunnelReader { messages, rest: Bytes::new() }, TunnelWriter { messages: sender, is_closed: false })
}

impl AsyncRead for TunnelReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.messages).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.rest = bytes,
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
            }
        }
        let size = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..size]);
        self.rest.advance(size);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TunnelWriter {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.messages).poll_ready(cx)).map_err(io_error)?;
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        Pin::new(&mut self.messages).start_send(message).map_err(io_error)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.messages).poll_flush(cx).map_err(io_error)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_closed {
            ready!(Pin::new(&mut self.messages).poll_ready(cx)).map_err(io_error)?;
            Pin::new(&mut self.messages).start_send(normal_close()).map_err(io_error)?;
            self.is_closed = true;
        }
        Pin::new(&mut self.messages).poll_flush(cx).map_err(io_error)
    }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::other(error),
    }
}
