//! A stream that gathers the writes of a connection, like `TCP_CORK`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of gathered bytes: four TLS records, and as much as the kernel sends in one piece.
const CAPACITY: usize = 64 << 10;
/// The largest buffer that is kept while no write is gathered.
const KEPT: usize = 8 << 10;

/// The connection's view of the stream. While there is a [`Hand`], a flush has no effect.
///
/// HTTP/2 flushes after each frame. An event that is sent to hundreds of watches of one connection would cost
/// a TLS record and a system call for each watch.
pub(super) struct Cork<S>(Arc<Mutex<Gathering<S>>>);

/// Sends gathered writes. The task of the connection holds the hand, because the task knows when there is no
/// more to write.
pub(super) struct Hand<S>(Arc<Mutex<Gathering<S>>>);

struct Gathering<S> {
    inner: S,
    gathered: Vec<u8>,
    /// True if a write has happened since the last flush of `inner`.
    is_unsent: bool,
    is_held: bool,
}

/// Makes a stream that gathers writes, and the hand that sends the writes.
pub(super) fn cork<S>(inner: S) -> (Cork<S>, Hand<S>) {
    let shared =
        Arc::new(Mutex::new(Gathering { inner, gathered: Vec::new(), is_unsent: false, is_held: true }));
    (Cork(Arc::clone(&shared)), Hand(shared))
}

impl<S: AsyncWrite + Unpin> Hand<S> {
    /// Sends gathered writes, as far as the stream accepts bytes. The rest is sent when the task is woken and
    /// calls `send` again. The connection's next write returns an error.
    pub(super) fn send(&self, cx: &mut Context<'_>) {
        let _ = self.0.lock().poll_flush(cx);
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

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_unsent {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.is_unsent = false;
        Poll::Ready(Ok(()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
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
        if gathering.is_held { Poll::Ready(Ok(())) } else { gathering.poll_flush(cx) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_drain(cx))?;
        Pin::new(&mut gathering.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn writes_of_all_sizes_arrive_in_order() {
        // The pipe is smaller than the gathered writes, so that writes are cut everywhere.
        let (near, mut far) = duplex(1_000);
        let (mut cork, hand) = cork(near);
        drop(hand);
        let expected: Vec<u8> = (0..CAPACITY * 4).map(|index| (index % 251) as u8).collect();
        let sent = expected.clone();
        let writer = async move {
            let mut rest = sent.as_slice();
            for size in [1, 100, CAPACITY - 1, CAPACITY, 7, CAPACITY + 1].into_iter().cycle() {
                let (now, later) = rest.split_at(size.min(rest.len()));
                cork.write_all(now).await.unwrap();
                cork.flush().await.unwrap();
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            cork.shutdown().await.unwrap();
        };
        let reader = async {
            let mut received = Vec::new();
            far.read_to_end(&mut received).await.unwrap();
            received
        };
        let ((), received) = tokio::join!(writer, reader);
        assert!(received == expected);
    }

    #[tokio::test]
    async fn the_hand_sends_what_was_gathered() {
        let (near, mut far) = duplex(1_000);
        let (mut cork, hand) = cork(near);
        for text in [b"one", b"two"] {
            cork.write_all(text).await.unwrap();
            cork.flush().await.unwrap();
        }
        let mut received = [0; 9];
        let early = futures::FutureExt::now_or_never(far.read(&mut received));
        assert!(early.is_none(), "nothing is sent before");
        std::future::poll_fn(|cx| {
            hand.send(cx);
            Poll::Ready(())
        })
        .await;
        far.read_exact(&mut received[..6]).await.unwrap();
        drop(hand);
        cork.write_all(b"end").await.unwrap();
        cork.flush().await.unwrap();
        far.read_exact(&mut received[6..]).await.unwrap();
        assert_eq!(&received, b"onetwoend");
    }
}
