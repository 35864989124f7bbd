//! The body of a response.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::{connection::Lease, error::Error};

/// The body of a response. Dropping the body before its end resets the HTTP/2 stream.
#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
    /// The stream of the connection, returned at the end of the body. `None` for HTTP/1.1.
    lease: Option<Lease>,
}

impl ResponseBody {
    pub(crate) fn new(incoming: Incoming, lease: Option<Lease>) -> Self {
        let lease = lease.filter(|_| !incoming.is_end_stream());
        Self { incoming, lease }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || self.incoming.is_end_stream() {
            self.lease = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Error::exchange)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
