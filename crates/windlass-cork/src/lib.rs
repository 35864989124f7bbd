//! A stream that gathers the writes of a connection, like `TCP_CORK`.
//!
//! HTTP/2 flushes after each frame. Each request of a client, and each event that a server sends to one of hundreds of watches, would cost a
//! TLS record and a system call. A [`Cork`] gathers the frames, and a [`Hand`] sends the frames together.
#![forbid(unsafe_code)]

use std::{
    future::poll_fn,
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

/// The connection's view of a stream. While there is a [`Hand`], a flush sends nothing.
///
/// A write or a flush returns the error that the hand has met.
#[derive(Debug)]
pub struct Cork<S>(Arc<Mutex<Gathering<S>>>);

/// Sends the gathered writes of a [`Cork`].
///
/// The task that drives the connection holds the hand, because the task knows when there is no more to write. After the hand is dropped, each
/// flush of the cork sends the gathered writes.
#[derive(Debug)]
pub struct Hand<S>(Arc<Mutex<Gathering<S>>>);

#[derive(Debug)]
struct Gathering<S> {
    inner: S,
    gathered: Vec<u8>,
    /// True if a write has happened since the last flush of `inner`.
    is_unsent: bool,
    /// True if there is a hand.
    is_held: bool,
    /// The error of the stream, until the connection has seen the error.
    error: Option<io::Error>,
}

/// Makes a stream that gathers writes, and the hand that sends the writes.
pub fn cork<S>(inner: S) -> (Cork<S>, Hand<S>) {
    let gathering = Gathering { inner, gathered: Vec::new(), is_unsent: false, is_held: true, error: None };
    let shared = Arc::new(Mutex::new(gathering));
    (Cork(shared.clone()), Hand(shared))
}

impl<S: AsyncWrite + Unpin> Hand<S> {
    /// Sends the gathered writes, as far as the stream accepts bytes. The rest is sent when the task is woken and calls `send` again.
    ///
    /// Returns false if the stream is broken: the next write or flush of the connection returns the error.
    pub fn send(&self, cx: &mut Context<'_>) -> bool {
        let mut gathering = self.0.lock();
        match gathering.poll_send(cx) {
            Poll::Ready(Err(error)) => {
                gathering.error = Some(error);
                false
            }
            Poll::Ready(Ok(())) | Poll::Pending => true,
        }
    }

    /// Drops the hand, and sends the writes so far: from now on, each flush of the cork sends.
    ///
    /// If the stream is broken, the next write or flush of the connection returns the error.
    pub async fn release(self) {
        self.0.lock().is_held = false;
        poll_fn(|cx| {
            let mut gathering = self.0.lock();
            gathering.error = ready!(gathering.poll_send(cx)).err();
            Poll::Ready(())
        })
        .await;
    }
}

impl<S> Drop for Hand<S> {
    fn drop(&mut self) {
        self.0.lock().is_held = false;
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

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.lock();
        gathering.take_error()?;
        if gathering.is_held { Poll::Ready(Ok(())) } else { gathering.poll_send(cx) }
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    fn send(hand: &Hand<DuplexStream>) -> bool {
        hand.send(&mut Context::from_waker(noop_waker_ref()))
    }

    #[tokio::test]
    async fn writes_wait_for_the_hand() {
        let (near, mut far) = duplex(1 << 10);
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
    async fn without_a_hand_a_flush_sends_the_writes() {
        let (near, mut far) = duplex(1 << 10);
        let (mut cork, hand) = cork(near);
        cork.write_all(b"before ").await.expect("written");
        drop(hand);
        cork.write_all(b"after").await.expect("written");
        let mut bytes = [0; 12];
        let mut read = std::pin::pin!(far.read_exact(&mut bytes));
        assert!(futures::poll!(read.as_mut()).is_pending());
        cork.flush().await.expect("sent");
        read.await.expect("read");
        assert_eq!(&bytes, b"before after");
    }

    #[tokio::test]
    async fn a_hand_that_is_released_sends_the_writes_so_far() {
        let (near, mut far) = duplex(10);
        let (mut cork, hand) = cork(near);
        cork.write_all(b"more than the pipe ").await.expect("gathered");
        let mut release = std::pin::pin!(hand.release());
        assert!(futures::poll!(release.as_mut()).is_pending());
        cork.write_all(b"takes").await.expect("gathered");
        let mut bytes = [0; 24];
        let ((), read) = tokio::join!(release, far.read_exact(&mut bytes));
        read.expect("read");
        assert_eq!(&bytes, b"more than the pipe takes");
        cork.write_all(b".").await.expect("gathered");
        cork.flush().await.expect("sent");
        assert_eq!(far.read_u8().await.expect("read"), b'.');
    }

    #[tokio::test]
    async fn a_full_stream_takes_the_rest_later() {
        let (near, mut far) = duplex(10);
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

    /// The pipe is smaller than the gathered writes, so that writes are cut everywhere.
    #[tokio::test]
    async fn writes_of_all_sizes_arrive_in_order() {
        let (near, mut far) = duplex(1_000);
        let (mut cork, hand) = cork(near);
        drop(hand);
        let sent: Vec<u8> = (0..CAPACITY * 4).map(|index| (index % 251) as u8).collect();
        let write = async {
            let mut rest = sent.as_slice();
            for size in [1, 100, CAPACITY - 1, CAPACITY, 7, CAPACITY + 1].into_iter().cycle() {
                let (now, later) = rest.split_at(size.min(rest.len()));
                cork.write_all(now).await.expect("written");
                cork.flush().await.expect("sent");
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            cork.shutdown().await.expect("ended");
        };
        let read = async {
            let mut received = Vec::new();
            far.read_to_end(&mut received).await.expect("read");
            received
        };
        let ((), received) = tokio::join!(write, read);
        assert!(received == sent);
    }

    #[tokio::test]
    async fn the_connection_learns_that_the_stream_is_broken() {
        let (near, far) = duplex(1 << 10);
        let (mut cork, hand) = cork(near);
        cork.write_all(b"frame").await.expect("gathered");
        drop(far);
        assert!(!send(&hand));
        assert_eq!(cork.flush().await.expect_err("broken").kind(), io::ErrorKind::BrokenPipe);
    }
}
