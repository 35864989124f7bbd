//! Exchanges that outlive their callers.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::runtime::Handle;

/// How long an exchange goes on without its caller.
const LIMIT: Duration = Duration::from_secs(60);

/// An exchange that a task continues if the caller drops the future, provided that `is_sent` returns true.
pub(crate) struct Unstoppable<T: Send + 'static, F: Fn() -> bool> {
    exchange: Option<BoxFuture<'static, T>>,
    is_sent: F,
    runtime: Handle,
}

impl<T: Send + 'static, F: Fn() -> bool> Unstoppable<T, F> {
    pub(crate) fn new(exchange: BoxFuture<'static, T>, is_sent: F, runtime: Handle) -> Self {
        Self { exchange: Some(exchange), is_sent, runtime }
    }
}

impl<T: Send + 'static, F: Fn() -> bool + Unpin> Future for Unstoppable<T, F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(exchange) = &mut self.exchange else { return Poll::Pending };
        let output = ready!(exchange.as_mut().poll(cx));
        self.exchange = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static, F: Fn() -> bool> Drop for Unstoppable<T, F> {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        if (self.is_sent)() {
            self.runtime.spawn(tokio::time::timeout(LIMIT, exchange));
        }
    }
}
