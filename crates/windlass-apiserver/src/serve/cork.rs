//! A stream that gathers small writes, as `TCP_CORK` does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Writes are gathered up to this many bytes.
const CAPACITY: usize = 32 << 10;
/// So many flushes are passed on at once after one for which waiting gathered nothing.
const PATIENCE: u8 = 15;

/// A stream whose flush lets the other tasks of the runtime run first, so that what they write goes out in one piece.
///
/// An event is sent to hundreds of watches of one HTTP/2 connection. Each of them is a task, and each would cost a TLS
/// record and a system call.
pub(super) struct Cork<S> {
    inner: S,
    gathered: Vec<u8>,
    /// The number of bytes that were gathered when a flush began to wait.
    waiting_since: Option<usize>,
    /// The number of flushes that do not wait.
    impatient: u8,
}

impl<S> Cork<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, gathered: Vec::new(), waiting_since: None, impatient: 0 }
    }
}

impl<S: AsyncWrite + Unpin> Cork<S> {
    /// Writes what was gathered.
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
        outcome
    }

    /// Lets other tasks run, once for each flush, unless that gathered nothing lately.
    fn poll_patience(&mut self, cx: &Context<'_>) -> Poll<()> {
        match self.waiting_since.take() {
            Some(before) => {
                if self.gathered.len() == before {
                    self.impatient = PATIENCE;
                }
                Poll::Ready(())
            }
            None if self.gathered.is_empty() => Poll::Ready(()),
            None if self.impatient > 0 => {
                self.impatient -= 1;
                Poll::Ready(())
            }
            None => {
                self.waiting_since = Some(self.gathered.len());
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Cork<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Cork<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.gathered.len() + bytes.len() > CAPACITY {
            ready!(self.poll_drain(cx))?;
        }
        if bytes.len() >= CAPACITY {
            return Pin::new(&mut self.inner).poll_write(cx, bytes);
        }
        self.gathered.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
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

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_patience(cx));
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn writes_of_all_sizes_arrive_in_order() {
        // The pipe is smaller than what is gathered, so that writes are cut everywhere.
        let (near, mut far) = duplex(1_000);
        let mut cork = Cork::new(near);
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
    async fn a_flush_lets_other_tasks_write_first() {
        let (near, mut far) = duplex(1_000);
        let mut cork = Cork::new(near);
        cork.write_all(b"one").await.unwrap();
        let mut waited = 0;
        std::future::poll_fn(|cx| match Pin::new(&mut cork).poll_flush(cx) {
            Poll::Pending => {
                waited += 1;
                assert!(Pin::new(&mut cork).poll_write(cx, b"two").is_ready());
                Poll::Pending
            }
            ready @ Poll::Ready(_) => ready,
        })
        .await
        .unwrap();
        assert_eq!(waited, 1);
        let mut received = [0; 6];
        far.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"onetwo");
    }
}
