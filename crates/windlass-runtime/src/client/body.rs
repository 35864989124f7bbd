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
    body: Body,
    idle: Option<IdleLimit>,
}

struct IdleLimit {
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl ResponseBody {
    /// Limits the time between two frames; `None` sets no limit.
    pub(super) fn new(body: Body, limit: Option<Duration>) -> Self {
        // A body that is complete needs no timer.
        let limit = limit.filter(|_| !body.is_end_stream());
        Self { body, idle: limit.map(|limit| IdleLimit { limit, timer: Box::pin(sleep(limit)) }) }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        let Some(idle) = &mut self.idle else { return frame.map_err(BoxError::from) };
        match frame {
            Poll::Ready(frame) => {
                idle.timer.as_mut().reset(Instant::now() + idle.limit);
                Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
            }
            Poll::Pending => {
                ready!(idle.timer.as_mut().poll(cx));
                let limit = idle.limit;
                Poll::Ready(Some(Err(Error::stalled(limit).into())))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
