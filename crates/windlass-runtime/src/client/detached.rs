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
use http::Method;
use tokio::runtime::Handle;

use crate::read_your_writes::{Session, WriteInFlight};

/// The exchange of a write. If a reconcile drops the exchange after the request was sent, a task continues the exchange, and the answer is
/// recorded. [`Session::revoke`] ends the task. Outside of a reconcile, a dropped exchange ends at once.
pub(super) struct Detached<T: Send + 'static> {
    exchange: Option<BoxFuture<'static, T>>,
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

/// A function of a write that is called when the outcome is unknown: the connection broke, or the server failed. The caller of the write may be
/// gone by then.
#[derive(Clone)]
pub(crate) struct OnUnknownOutcome(pub(crate) Arc<dyn Fn() + Send + Sync>);

/// Returns true for writes, except for a write with [`NoRetry`](super::NoRetry): the caller of such a write repeats the write.
pub(super) fn outlives_caller(method: &Method, no_retry: bool) -> bool {
    !no_retry && matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE)
}

impl<T: Send + 'static> Detached<T> {
    pub(super) fn new(exchange: BoxFuture<'static, T>, progress: Arc<Progress>) -> Self {
        Self { exchange: Some(exchange), progress, session: None }
    }
}

impl<T: Send + 'static> Future for Detached<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
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

impl<T: Send + 'static> Drop for Detached<T> {
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
