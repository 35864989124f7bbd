//! The body of a response.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::{connection::Lease, error::Error};

/// The body of a response. Dropping the body before its end resets the HTTP/2 stream.
#[derive(Debug)]
pub struct ResponseBody(Content);

#[derive(Debug)]
enum Content {
    Http1(Incoming),
    Http2 {
        stream: RecvStream,
        /// The stream of the connection, returned at the end of the body.
        lease: Option<Lease>,
    },
}

impl ResponseBody {
    pub(crate) fn http1(incoming: Incoming) -> Self {
        Self(Content::Http1(incoming))
    }

    pub(crate) fn http2(stream: RecvStream, lease: Lease) -> Self {
        let lease = (!stream.is_end_stream()).then_some(lease);
        Self(Content::Http2 { stream, lease })
    }
}

/// Returns the next bytes of a stream, and lets the server send as many further bytes.
fn poll_data(stream: &mut RecvStream, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
    let data = match ready!(stream.poll_data(cx)) {
        // The server has sent the whole response, and does not want the rest of the request.
        Some(Err(error)) if error.reason() == Some(Reason::NO_ERROR) => None,
        data => data,
    };
    if let Some(Ok(data)) = &data {
        // Fails only if the stream has ended.
        let _ = stream.flow_control().release_capacity(data.len());
    }
    Poll::Ready(data)
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match &mut self.0 {
            Content::Http1(incoming) => {
                let frame = ready!(Pin::new(incoming).poll_frame(cx));
                Poll::Ready(frame.map(|frame| frame.map_err(Error::exchange)))
            }
            Content::Http2 { stream, lease } => {
                let data = ready!(poll_data(stream, cx));
                if !matches!(data, Some(Ok(_))) || stream.is_end_stream() {
                    *lease = None;
                }
                Poll::Ready(data.map(|data| data.map(Frame::data).map_err(Error::exchange)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Http1(incoming) => incoming.is_end_stream(),
            Content::Http2 { stream, .. } => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Http1(incoming) => incoming.size_hint(),
            Content::Http2 { .. } => SizeHint::default(),
        }
    }
}
