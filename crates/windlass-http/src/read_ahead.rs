//! A stream that reads ahead of its reader.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// The most bytes that are read ahead: four TLS records.
const CAPACITY: usize = 64 << 10;

/// Reads ahead. TLS asks for 4 KiB at a time, and each read would be a system call.
pub(crate) struct ReadAhead<S> {
    inner: S,
    buffer: Box<[u8]>,
    /// The bytes of the buffer that the reader does not have yet.
    start: usize,
    end: usize,
}

impl<S> ReadAhead<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, buffer: vec![0; CAPACITY].into(), start: 0, end: 0 }
    }
}

impl<S: Read + Unpin> ReadAhead<S> {
    /// Fills the empty buffer with the bytes that have arrived.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut buffer = ReadBuf::new(&mut self.buffer);
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer.unfilled()))?;
        (self.start, self.end) = (0, buffer.filled().len());
        Poll::Ready(Ok(()))
    }
}

impl<S: Read + Unpin> Read for ReadAhead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut wanted: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.start == self.end {
            if wanted.remaining() >= CAPACITY {
                return Pin::new(&mut self.inner).poll_read(cx, wanted);
            }
            ready!(self.poll_fill(cx))?;
        }
        let length = wanted.remaining().min(self.end - self.start);
        wanted.put_slice(&self.buffer[self.start..self.start + length]);
        self.start += length;
        Poll::Ready(Ok(()))
    }
}

impl<S: Write + Unpin> Write for ReadAhead<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<S: Connection> Connection for ReadAhead<S> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

#[cfg(test)]
mod tests {
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn small_reads_take_what_has_been_read_ahead() {
        let (near, mut far) = duplex(1 << 20);
        let sent: Vec<u8> = (0..=255).cycle().take(CAPACITY + 1000).collect();
        far.write_all(&sent).await.expect("written");
        let mut stream = TokioIo::new(ReadAhead::new(TokioIo::new(near)));
        let mut received = [0; 4096];
        stream.read_exact(&mut received).await.expect("read");
        assert_eq!(received, sent[..4096]);
        assert_eq!(stream.inner().end, CAPACITY);

        let mut rest = vec![0; sent.len() - received.len()];
        stream.read_exact(&mut rest).await.expect("read");
        assert_eq!(rest, sent[received.len()..]);
        drop(far);
        assert_eq!(stream.read(&mut [0; 1]).await.expect("the end"), 0);
    }

    #[tokio::test]
    async fn a_large_read_passes_by_the_buffer() {
        let (near, mut far) = duplex(1 << 20);
        let sent = vec![7; 2 * CAPACITY];
        far.write_all(&sent).await.expect("written");
        let mut stream = TokioIo::new(ReadAhead::new(TokioIo::new(near)));
        let mut received = vec![0; sent.len()];
        stream.read_exact(&mut received).await.expect("read");
        assert_eq!((stream.inner().end, received), (0, sent));
    }
}
