//! The body of a response to a client that may be unknown.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Frame, SizeHint};

use super::strangers::InFlight;
use crate::body::Body;

/// A body that keeps the request in flight until the connection has taken the last piece.
pub(super) struct InFlightBody {
    body: Body,
    _in_flight: InFlight,
}

impl InFlightBody {
    pub(super) fn new(body: Body, in_flight: InFlight) -> Self {
        Self { body, _in_flight: in_flight }
    }
}

impl http_body::Body for InFlightBody {
    type Data = <Body as http_body::Body>::Data;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
