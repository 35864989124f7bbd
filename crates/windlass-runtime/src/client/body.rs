//! Response bodies that fail when the server stops sending.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::time::{Sleep, sleep};

use crate::error::{BoxError, Error};

/// A response body with a limit on the time between two frames.
pub(crate) struct ResponseBody {
    content: Content,
    idle: Option<IdleLimit>,
}

/// The body of a response, as the transport returns the body.
pub(crate) enum Content {
    Kube(Body),
    Http(windlass_http::ResponseBody),
}

struct IdleLimit {
    limit: Duration,
    /// Made when the body waits for a frame: most responses are complete at once.
    timer: Option<Pin<Box<Sleep>>>,
}

impl ResponseBody {
    /// Limits the time between two frames; `None` sets no limit.
    pub(super) fn new(content: impl Into<Content>, limit: Option<Duration>) -> Self {
        Self { content: content.into(), idle: limit.map(|limit| IdleLimit { limit, timer: None }) }
    }

    /// Reads the whole body. A body of one frame is not copied.
    pub(super) async fn bytes(mut self) -> Result<Bytes, BoxError> {
        let Some(first) = self.next_data().await? else { return Ok(Bytes::new()) };
        if self.is_end_stream() {
            return Ok(first);
        }
        let Some(second) = self.next_data().await? else { return Ok(first) };
        let mut bytes = BytesMut::with_capacity(2 * (first.len() + second.len()));
        bytes.extend_from_slice(&first);
        bytes.extend_from_slice(&second);
        while let Some(next) = self.next_data().await? {
            bytes.extend_from_slice(&next);
        }
        Ok(bytes.freeze())
    }

    /// Returns the next frame with data.
    async fn next_data(&mut self) -> Result<Option<Bytes>, BoxError> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.content).poll_frame(cx);
        let Some(idle) = &mut self.idle else { return frame };
        let limit = idle.limit;
        match frame {
            Poll::Ready(frame) => {
                // The next poll that waits makes a timer.
                idle.timer = None;
                Poll::Ready(frame)
            }
            Poll::Pending => {
                let timer = idle.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
                ready!(timer.as_mut().poll(cx));
                Poll::Ready(Some(Err(Error::stalled(limit).into())))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }
}

impl From<Body> for Content {
    fn from(body: Body) -> Self {
        Self::Kube(body)
    }
}

impl From<windlass_http::ResponseBody> for Content {
    fn from(body: windlass_http::ResponseBody) -> Self {
        Self::Http(body)
    }
}

impl HttpBody for Content {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Kube(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
            Self::Http(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Kube(body) => body.size_hint(),
            Self::Http(body) => body.size_hint(),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Kube(body) => body.is_end_stream(),
            Self::Http(body) => body.is_end_stream(),
        }
    }
}
