//! Writes that a reconcile has sent and dropped.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube_client::client::Body;
use tokio::runtime::Handle;

use super::{body::ResponseBody, service::NoRetry};
use crate::{
    error::BoxError,
    read_your_writes::{Session, WriteInFlight},
};

type Answer = Result<Response<ResponseBody>, BoxError>;

/// The exchange of a write. If a reconcile drops the exchange after the request was sent, a task continues the exchange, and the answer is
/// recorded. [`Session::revoke`] ends the task. Outside of a reconcile, a dropped exchange ends at once.
pub(super) struct Detached {
    exchange: Option<BoxFuture<'static, Answer>>,
    progress: Arc<Progress>,
    /// The session of the caller, known from the first poll on.
    session: Option<(Session, WriteInFlight)>,
}

/// The progress of an exchange.
#[derive(Default)]
pub(super) struct Progress {
    is_sent: AtomicBool,
    is_dropped: AtomicBool,
}

impl Progress {
    /// Notes that the server may have the request, or has refused the request.
    pub(super) fn set_sent(&self, is_sent: bool) {
        self.is_sent.store(is_sent, Ordering::Relaxed);
    }

    /// Returns true if the server may have the request.
    pub(super) fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Relaxed)
    }

    /// Returns true once the caller has dropped the exchange. A refused request is not sent again after that.
    pub(super) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }
}

/// An extension of a write, called when the outcome is unknown: the connection broke, or the server failed. The caller of the write may be
/// gone by then.
#[derive(Clone)]
pub(crate) struct OnUnknownOutcome(pub(crate) Arc<dyn Fn() + Send + Sync>);

/// Returns true for writes, except for a write with [`NoRetry`]: the caller of such a write repeats the write.
pub(super) fn outlives_caller(request: &Request<Body>) -> bool {
    matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH | Method::DELETE)
        && request.extensions().get::<NoRetry>().is_none()
}

impl Detached {
    pub(super) fn new(exchange: BoxFuture<'static, Answer>, progress: Arc<Progress>) -> Self {
        Self { exchange: Some(exchange), progress, session: None }
    }
}

impl Future for Detached {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let this = self.get_mut();
        if this.session.is_none() {
            this.session = Session::begin_write();
        }
        let Some(exchange) = &mut this.exchange else { return Poll::Pending };
        let answer = std::task::ready!(exchange.as_mut().poll(cx));
        this.exchange = None;
        this.session = None;
        Poll::Ready(answer)
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        self.progress.is_dropped.store(true, Ordering::Relaxed);
        if !self.progress.is_sent() {
            return;
        }
        let (Some((session, in_flight)), Ok(runtime)) = (self.session.take(), Handle::try_current()) else {
            return;
        };
        if session.is_revoked() {
            return;
        }
        runtime.spawn(async move {
            tokio::select! {
                biased;
                () = session.revoked() => {}
                _ = session.run(exchange) => {}
            }
            drop(in_flight);
        });
    }
}
