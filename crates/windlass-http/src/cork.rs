//! A stream that gathers the writes of a connection, like `TCP_CORK`.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of gathered bytes: four TLS records, and as much as the kernel sends in one piece.
const CAPACITY: usize = 64 << 10;

/// The largest buffer that is kept while no write is gathered.
const KEPT: usize = 8 << 10;

/// The connection's view of a stream. Flushing has no effect, because HTTP/2 flushes after the body of each request: every request would
/// cost a TLS record and a system call.
pub(crate) struct Cork<S>(Arc<Mutex<Gathering<S>>>);

/// Sends the gathered writes. The driver of the connection holds the hand, because the driver knows when there is no more to write.
pub(crate) struct Hand<S>(Arc<Mutex<Gathering<S>>>);

struct Gathering<S> {
    inner: S,
    gathered: Vec<u8>,
    /// True if a write has happened since the last flush of `inner`.
    is_unsent: bool,
    /// The error of the stream, until the connection has seen the error.
    error: Option<io::Error>,
}

/// Makes a stream that gathers writes, and the hand that sends the writes.
pub(crate) fn cork<S>(inner: S) -> (Cork<S>, Hand<S>) {
    let gathering = Gathering { inner, gathered: Vec::new(), is_unsent: false, error: None };
    let shared = Arc::new(Mutex::new(gathering));
    (Cork(shared.clone()), Hand(shared))
}

impl<S: AsyncWrite + Unpin> Hand<S> {
    /// Sends the gathered writes, as far as the stream accepts bytes. The rest is sent when the task is woken and calls `send` again.
    ///
    /// Returns false if the stream is broken: the next flush of the connection returns the error.
    pub(crate) fn send(&self, cx: &mut Context<'_>) -> bool {
        let mut gathering = self.0.lock();
        match gathering.poll_send(cx) {
            Poll::Ready(Err(error)) => {
                gathering.error = Some(error);
                false
            }
            Poll::Ready(Ok(())) | Poll::Pending => true,
        }
    }
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    /// Writes the gathered bytes.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut written = 0;
        let outcome = loop {
            if written == self.gathered.len() {
                break Poll::Ready(Ok(()));
            }
            match Pin::new(&mut self.inner).poll_write(cx, &self.gathered[written..]) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => written += count,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.gathered.drain(..written);
        if self.gathered.is_empty() && self.gathered.capacity() > KEPT {
            self.gathered = Vec::new();
        }
        outcome
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_unsent {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.is_unsent = false;
        Poll::Ready(Ok(()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.take_error()?;
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        self.is_unsent = true;
        if self.gathered.len() + length > CAPACITY {
            ready!(self.poll_drain(cx))?;
        }
        if length >= CAPACITY {
            return Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        }
        for slice in slices {
            self.gathered.extend_from_slice(slice);
        }
        Poll::Ready(Ok(length))
    }

    fn take_error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Cork<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Cork<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().poll_write(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_write(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.lock().take_error())
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_drain(cx))?;
        Pin::new(&mut gathering.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures::task::noop_waker_ref;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    fn send(hand: &Hand<DuplexStream>) -> bool {
        hand.send(&mut Context::from_waker(noop_waker_ref()))
    }

    #[tokio::test]
    async fn writes_wait_for_the_hand() {
        let (near, mut far) = tokio::io::duplex(1 << 10);
        let (mut cork, hand) = cork(near);
        for _ in 0..3 {
            cork.write_all(b"frame ").await.expect("written");
            cork.flush().await.expect("no effect");
        }
        let mut bytes = [0; 64];
        let mut read = std::pin::pin!(far.read(&mut bytes));
        assert!(futures::poll!(read.as_mut()).is_pending());
        assert!(send(&hand));
        assert_eq!(read.await.expect("read"), b"frame frame frame ".len());
    }

    #[tokio::test]
    async fn a_full_stream_takes_the_rest_later() {
        let (near, mut far) = tokio::io::duplex(10);
        let (mut cork, hand) = cork(near);
        let sent: Vec<u8> = (0..=255).cycle().take(3 * CAPACITY).collect();
        let write = async {
            cork.write_all(&sent).await.expect("written");
            while hand.0.lock().is_unsent {
                assert!(send(&hand));
                tokio::task::yield_now().await;
            }
        };
        let read = async {
            let mut received = vec![0; sent.len()];
            far.read_exact(&mut received).await.expect("read");
            received
        };
        let ((), received) = tokio::join!(write, read);
        assert!(received == sent);
    }

    #[tokio::test]
    async fn the_connection_learns_that_the_stream_is_broken() {
        let (near, far) = tokio::io::duplex(1 << 10);
        let (mut cork, hand) = cork(near);
        cork.write_all(b"frame").await.expect("gathered");
        drop(far);
        assert!(!send(&hand));
        assert_eq!(cork.flush().await.expect_err("broken").kind(), io::ErrorKind::BrokenPipe);
    }
}
