//! A connection and all requests of the connection as one task.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures::future::{BoxFuture, poll_fn};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use windlass_cork::Hand;

/// The requests that an HTTP/2 connection has begun. The executor is [`drive`].
///
/// A task for each request costs more than most requests take, and the tasks of hundreds of watches contend
/// for the shared state of the connection. The handler moves long requests to other tasks.
#[derive(Clone, Default)]
pub(super) struct RequestFutures(Arc<Mutex<Vec<BoxFuture<'static, ()>>>>);

impl<F> hyper::rt::Executor<F> for RequestFutures
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, request: F) {
        // A panic, for example in a body that is being sent, ends only that request.
        let request = AssertUnwindSafe(request).catch_unwind().map(drop);
        // All requests share the task's budget, which ends before hundreds of watches have had a turn.
        self.0.lock().push(Box::pin(tokio::task::unconstrained(request)));
    }
}

impl RequestFutures {
    fn take(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Drives a connection and the connection's requests, until the connection ends. Unfinished requests are
/// dropped then. `hand` sends all gathered writes together.
pub(super) async fn drive<C: Future, S: AsyncWrite + Unpin>(
    connection: C,
    begun: RequestFutures,
    hand: Hand<S>,
) -> C::Output {
    let mut connection = pin!(connection);
    let mut requests = FuturesUnordered::new();
    poll_fn(|cx| {
        loop {
            // Requests first, because the connection sends the replies.
            while let Poll::Ready(Some(())) = requests.poll_next_unpin(cx) {}
            let end = connection.as_mut().poll(cx);
            let new = begun.take();
            if end.is_ready() || new.is_empty() {
                if !hand.send(cx) && end.is_pending() {
                    // The connection learns that the stream is broken.
                    return connection.as_mut().poll(cx);
                }
                return end;
            }
            requests.extend(new);
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper::rt::Executor;
    use tokio::sync::{Notify, oneshot};
    use windlass_cork::cork;

    use super::*;

    #[tokio::test]
    async fn a_panic_ends_its_own_request_only() {
        let begun = RequestFutures::default();
        let (done, is_done) = oneshot::channel::<()>();
        begun.execute(async { panic!("a bug") });
        begun.execute(async move {
            tokio::task::yield_now().await;
            drop(done);
        });
        let (_stream, hand) = cork(tokio::io::sink());
        assert!(drive(is_done, begun, hand).await.is_err());
    }

    #[tokio::test]
    async fn requests_run_until_the_connection_ends() {
        let begun = RequestFutures::default();
        let done = Arc::new(AtomicUsize::new(0));
        let all_but_one = Arc::new(Notify::new());
        for number in 0..1_000 {
            let (done, notify) = (Arc::clone(&done), Arc::clone(&all_but_one));
            begun.execute(async move {
                tokio::task::yield_now().await;
                if number == 500 {
                    std::future::pending::<()>().await;
                }
                if done.fetch_add(1, Ordering::Relaxed) == 998 {
                    notify.notify_one();
                }
            });
        }
        let (ended, dropped) = oneshot::channel::<()>();
        begun.execute(async move {
            let _held = ended;
            std::future::pending::<()>().await;
        });
        let (_stream, hand) = cork(tokio::io::sink());
        drive(all_but_one.notified(), begun, hand).await;
        assert_eq!(done.load(Ordering::Relaxed), 999);
        assert!(dropped.await.is_err(), "a request that was not done is dropped");
    }
}
