//! Early replies over HTTP/1.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// The largest rest of a body that is received and thrown away; Go's figure.
const DRAIN_LIMIT: usize = 256 * 1024;
/// How long the rest of a body may take; Go's figure.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// An HTTP/1 body. Dropping the body drains the unread rest for a moment.
///
/// Without this, the connection is closed as soon as the reply is written. A client that is still sending then gets a
/// connection reset instead of the reply.
pub(super) struct DrainOnDrop(Option<Incoming>);

impl DrainOnDrop {
    pub(super) fn new(body: Incoming) -> Self {
        Self(Some(body))
    }
}

impl Body for DrainOnDrop {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.0 {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map(Incoming::size_hint).unwrap_or_default()
    }
}

impl Drop for DrainOnDrop {
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain(body)).await;
            });
        }
    }
}

async fn drain(mut body: Incoming) {
    let mut drained = 0;
    while let Some(Ok(frame)) = body.frame().await {
        drained += frame.data_ref().map_or(0, Bytes::len);
        if drained > DRAIN_LIMIT {
            return;
        }
    }
}
