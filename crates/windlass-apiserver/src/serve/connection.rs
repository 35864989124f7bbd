//! A connection and all requests of the connection as one task.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, poll_fn};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use tokio::time::timeout;
use windlass_cork::Hand;

/// How long a connection answers requests before other tasks have a turn. A connection has up to 250 requests at the same time.
const TURN: Duration = Duration::from_millis(2);

/// The work whose replies are sent together. Fewer replies cost more system calls; with more replies, the client waits while the server works, and
/// the server waits while the client works.
const PART: Duration = Duration::from_micros(200);

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

/// How long the last bytes of a connection wait for the client: the reply before the client speaks another protocol is followed by no flush.
const LAST_BYTES: Duration = Duration::from_secs(10);

/// Drives a connection and the connection's requests, until the connection ends. Unfinished requests are
/// dropped then. `hand` sends all gathered writes together.
pub(super) async fn drive<C: Future, S: AsyncWrite + Unpin>(
    connection: C,
    begun: RequestFutures,
    hand: Hand<S>,
) -> C::Output {
    let mut connection = pin!(connection);
    let mut requests = FuturesUnordered::new();
    let end = poll_fn(|cx| {
        let start = Instant::now();
        loop {
            let part = Instant::now();
            // Requests first, because the connection sends the replies.
            let mut is_cut = false;
            while !is_cut && requests.poll_next_unpin(cx) == Poll::Ready(Some(())) {
                is_cut = part.elapsed() > PART;
            }
            let end = connection.as_mut().poll(cx);
            let new = begun.take();
            let has_new = !new.is_empty();
            requests.extend(new);
            let is_over = start.elapsed() > TURN;
            let is_idle = !has_new && !is_cut;
            if (is_cut || is_idle || is_over || end.is_ready()) && !hand.send(cx) && end.is_pending() {
                // The connection learns that the stream is broken.
                return connection.as_mut().poll(cx);
            }
            if end.is_ready() || is_idle {
                return end;
            }
            if is_over {
                cx.waker().wake_by_ref();
                return end;
            }
        }
    })
    .await;
    drop(requests);
    let _ = timeout(LAST_BYTES, hand.release()).await;
    end
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper::rt::Executor;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
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
    async fn many_requests_leave_other_tasks_their_turn() {
        let begun = RequestFutures::default();
        let (last, done) = oneshot::channel();
        let others = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&others);
        let work = || {
            let start = Instant::now();
            while start.elapsed() < TURN / 4 {
                std::hint::spin_loop();
            }
        };
        for _ in 0..100 {
            begun.execute(async move { work() });
        }
        begun.execute(async move { last.send(seen.load(Ordering::Relaxed)).unwrap() });
        let other = tokio::spawn(async move {
            loop {
                others.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let (_stream, hand) = cork(tokio::io::sink());
        let turns = drive(done, begun, hand).await.unwrap();
        assert!(turns >= 5, "{turns} turns of the other task during 100 requests");
        other.abort();
    }

    #[tokio::test]
    async fn replies_are_sent_before_later_requests_run() {
        let begun = RequestFutures::default();
        let (near, mut far) = duplex(1 << 10);
        let (mut replies, hand) = cork(near);
        let (last, mut done) = oneshot::channel();
        for _ in 0..3 {
            begun.execute(async {
                let start = Instant::now();
                while start.elapsed() <= PART {
                    std::hint::spin_loop();
                }
            });
        }
        begun.execute(async move {
            let mut sent = [0; 8];
            last.send(far.read(&mut sent).now_or_never()).unwrap();
        });
        let connection = poll_fn(|cx| {
            let written = pin!(&mut replies).poll_write(cx, b"x");
            assert!(written.is_ready());
            done.poll_unpin(cx)
        });
        let sent = drive(connection, begun, hand).await.unwrap();
        assert!(sent.is_some_and(|read| read.unwrap() > 0));
    }

    #[tokio::test]
    async fn the_last_bytes_of_a_connection_wait_for_a_full_stream() {
        let (near, mut far) = duplex(4);
        let (mut stream, hand) = cork(near);
        stream.write_all(b"101 Switching Protocols").await.unwrap();
        let mut last = [0; 23];
        let driven = drive(std::future::ready(()), RequestFutures::default(), hand);
        let ((), read) = tokio::join!(driven, far.read_exact(&mut last));
        read.unwrap();
        assert_eq!(&last, b"101 Switching Protocols");
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
