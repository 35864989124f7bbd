//! Response bodies that fail when the server stops sending.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube_client::client::Body;
use tokio::time::{Instant, Sleep, sleep};

use crate::error::{BoxError, Error};

/// A response body with a limit on the time between two frames.
pub(super) struct ResponseBody {
    content: Content,
    idle: Option<IdleLimit>,
}

/// The body of a response, as the transport returns the body.
pub(super) enum Content {
    Kube(Body),
    Http(windlass_http::ResponseBody),
}

struct IdleLimit {
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl ResponseBody {
    /// Limits the time between two frames; `None` sets no limit.
    pub(super) fn new(content: impl Into<Content>, limit: Option<Duration>) -> Self {
        let content = content.into();
        // A body that is complete needs no timer.
        let limit = limit.filter(|_| !content.is_end_stream());
        Self { content, idle: limit.map(|limit| IdleLimit { limit, timer: Box::pin(sleep(limit)) }) }
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
        match frame {
            Poll::Ready(frame) => {
                idle.timer.as_mut().reset(Instant::now() + idle.limit);
                Poll::Ready(frame)
            }
            Poll::Pending => {
                ready!(idle.timer.as_mut().poll(cx));
                let limit = idle.limit;
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
