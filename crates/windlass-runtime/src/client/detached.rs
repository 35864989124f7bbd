//! Writes that outlive their callers.

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
/// recorded. The exchange ends with the right to write: see [`Session::revoke`]. Outside of a reconcile, dropping the exchange ends the
/// exchange.
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
    /// Notes whether the server may have the request.
    pub(super) fn set_sent(&self, is_sent: bool) {
        self.is_sent.store(is_sent, Ordering::Relaxed);
    }

    /// Whether the caller dropped the exchange. A request that the server refused is not sent again then.
    pub(super) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }
}

/// Called when it is not known whether a request took effect: the connection broke, or the server failed. Belongs into the extensions of
/// a write. The caller may be gone by then.
#[derive(Clone)]
pub(crate) struct OnUnknownOutcome(pub(crate) Arc<dyn Fn() + Send + Sync>);

/// Whether a request outlives its caller: writes do, except those that the caller sends again by itself.
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
        if !self.progress.is_sent.load(Ordering::Relaxed) {
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
