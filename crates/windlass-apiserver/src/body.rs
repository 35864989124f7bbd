//! The body of a response, and of a request that is not received yet.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;

/// The body of a request, as the body arrives.
pub(crate) type UnreadBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Returns a body without bytes.
pub(crate) fn unread_nothing() -> UnreadBody {
    Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// The body of a response: bytes in memory, or a stream.
pub struct Body(Kind);

/// Marks a response that is sent as messages if the client asks for a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Messages {
    /// The events of a watch.
    Events,
    /// The bytes of a log.
    Bytes,
}

type Pieces = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

enum Kind {
    Full(Bytes),
    /// Pieces that other bodies may share, and the number of pieces that were sent.
    Shared(Arc<[Bytes]>, usize),
    Stream(Pieces),
}

impl Body {
    /// Creates an empty body.
    pub fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// Creates a body from bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Full(bytes.into()))
    }

    /// Creates a body from pieces in memory, which are not copied. No piece may be empty.
    pub(crate) fn shared(pieces: impl Into<Arc<[Bytes]>>) -> Self {
        Self(Kind::Shared(pieces.into(), 0))
    }

    /// Returns the number of bytes that are left of a body in memory; `None` for a stream.
    pub(crate) fn length_in_memory(&self) -> Option<usize> {
        match &self.0 {
            Kind::Full(bytes) => Some(bytes.len()),
            Kind::Shared(pieces, sent) => Some(pieces.iter().skip(*sent).map(Bytes::len).sum()),
            Kind::Stream(_) => None,
        }
    }

    /// Returns the bytes from `start` to before `end` of a body in memory. A stream stays whole.
    pub(crate) fn part(self, start: usize, end: usize) -> Self {
        match self.0 {
            Kind::Full(bytes) => Self::full(bytes.slice(start..end)),
            Kind::Shared(pieces, sent) => {
                let mut at = 0;
                let mut parts = Vec::new();
                for piece in pieces.iter().skip(sent) {
                    let (from, to) = (start.max(at), end.min(at + piece.len()));
                    if from < to {
                        parts.push(piece.slice(from - at..to - at));
                    }
                    at += piece.len();
                }
                Self::shared(parts)
            }
            stream @ Kind::Stream(_) => Self(stream),
        }
    }

    /// Creates a body from a stream of pieces. Each piece is sent at once.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::of(stream.map(Ok))
    }

    fn of(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(pieces)))
    }

    /// Passes the body of another server's reply on. If that body breaks off, the error ends the connection of the client: the
    /// client must not take the part for the whole.
    pub(crate) fn passed_on(body: Incoming) -> Self {
        Self::of(stream::unfold(Some(body), |body| async move {
            let mut body = body?;
            loop {
                match body.frame().await?.map(Frame::into_data) {
                    Ok(Ok(data)) => return Some((Ok(data), Some(body))),
                    // Trailers.
                    Ok(Err(_)) => {}
                    Err(error) => return Some((Err(io::Error::other(error)), None)),
                }
            }
        }))
    }

    /// Drops `guard` when the body ends or is dropped. A body in memory drops the guard at once.
    pub(crate) fn holding(self, guard: impl Send + Unpin + 'static) -> Self {
        match self.0 {
            Kind::Full(_) | Kind::Shared(..) => self,
            Kind::Stream(stream) => Self::of(GuardedStream { stream, _guard: guard }),
        }
    }

    /// Ends a streaming body when `end` completes.
    pub(crate) fn until<E>(self, end: impl FnOnce() -> E) -> Self
    where
        E: Future<Output = ()> + Send + 'static,
    {
        match self.0 {
            Kind::Full(_) | Kind::Shared(..) => self,
            Kind::Stream(stream) => Self::of(StreamUntil { stream, end: Box::pin(end()) }),
        }
    }
}

/// A stream with a guard.
struct GuardedStream<G> {
    stream: Pieces,
    _guard: G,
}

impl<G: Unpin> Stream for GuardedStream<G> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        self.stream.as_mut().poll_next(cx)
    }
}

/// A stream that ends early. The end is polled only if there is no piece to send: hundreds of streams may
/// share the end.
struct StreamUntil<E> {
    stream: Pieces,
    end: Pin<Box<E>>,
}

impl<E: Future<Output = ()>> Stream for StreamUntil<E> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self.stream.as_mut().poll_next(cx) {
            Poll::Pending => self.end.as_mut().poll(cx).map(|()| None),
            ready @ Poll::Ready(_) => ready,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Shared(pieces, sent) => {
                let next = pieces.get(*sent).cloned();
                *sent += 1;
                Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
            }
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Shared(pieces, sent) => *sent >= pieces.len(),
            Kind::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Shared(pieces, sent) => {
                let rest = pieces.get(*sent..).unwrap_or_default();
                SizeHint::with_exact(rest.iter().map(|piece| piece.len() as u64).sum())
            }
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Kind::Full(_) => "Body::full",
            Kind::Shared(..) => "Body::shared",
            Kind::Stream(_) => "Body::stream",
        })
    }
}
