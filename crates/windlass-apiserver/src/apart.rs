//! Futures with long polls, run without blocking the workers of the runtime.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::available_parallelism;

use tokio::sync::{Notify, Semaphore};
use tokio::task::{JoinError, spawn_blocking};

thread_local! {
    /// True while the thread runs a long poll.
    static IS_APART: Cell<bool> = const { Cell::new(false) };
}

/// Runs futures with long polls on blocking threads. As many polls run at the same time as the machine has processors, at least two; the
/// other futures wait in order.
#[derive(Clone, Debug)]
pub(crate) struct Apart(Arc<Semaphore>);

impl Apart {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(available_parallelism().map_or(2, |count| count.get().max(2)))))
    }

    /// Runs a future: each poll on a blocking thread of the runtime, and without any thread while the future waits. If the caller
    /// leaves, the future ends at the next [`checkpoint`].
    ///
    /// # Errors
    ///
    /// The runtime stops.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut future: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
        loop {
            let waker = waker.clone();
            // The semaphore is never closed.
            let permit = Arc::clone(&self.0).acquire_owned().await.ok();
            let poll = move || {
                // Held until the end of the poll, even if the caller has left.
                let _permit = permit;
                IS_APART.set(true);
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                IS_APART.set(false);
                (future, polled)
            };
            let (back, polled) = spawn_blocking(poll).await?;
            if let Poll::Ready(done) = polled {
                return Ok(done);
            }
            future = back;
            woken.0.notified().await;
        }
    }

    /// Runs `work` on a blocking thread of the runtime; without a runtime, on this thread. If the caller leaves while the work waits for a
    /// thread, the work is dropped.
    ///
    /// # Errors
    ///
    /// The runtime stops, or the work panics.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Ok(work());
        }
        self.run(async move { work() }).await
    }
}

/// Ends a long poll between two steps of a request: other requests get their turn, and a request without a client stops here. Does
/// nothing in other polls.
pub(crate) async fn checkpoint() {
    let mut is_due = IS_APART.get();
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut is_due) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Remembers a wake-up until the next poll.
#[derive(Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_patience::stretched;

    use super::*;

    #[tokio::test]
    async fn a_long_poll_does_not_hold_up_others() {
        let (release, released) = std::sync::mpsc::channel();
        // A poll that ends only after another task has run.
        let long = tokio::spawn(async move {
            let work = async move {
                let released = released.recv_timeout(stretched(Duration::from_secs(20)));
                tokio::task::yield_now().await;
                released
            };
            Apart::new().run(work).await
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        release.send(7).unwrap();
        assert_eq!(long.await.unwrap().unwrap(), Ok(7));
    }

    #[test]
    fn a_future_that_waits_holds_no_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (say, heard) = tokio::sync::oneshot::channel();
            let apart = Apart::new();
            let other = apart.clone();
            let waiting = tokio::spawn(async move { other.run(heard).await });
            // The only blocking thread is free while the other future waits.
            apart.run(async { say.send(1).unwrap() }).await.unwrap();
            assert_eq!(waiting.await.unwrap().unwrap(), Ok(1));
        });
    }

    /// Holds the thread until `release` sends or is dropped.
    fn hold(release: &std::sync::mpsc::Receiver<()>) {
        let _ = release.recv_timeout(stretched(Duration::from_secs(20)));
    }

    #[tokio::test]
    async fn few_polls_run_at_the_same_time() {
        let apart = Apart(Arc::new(Semaphore::new(1)));
        let (release, released) = std::sync::mpsc::channel();
        let mut first = Box::pin(apart.run(async move { hold(&released) }));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(apart.run(async { 2 }));
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(apart.0.available_permits(), 0, "the second future waits for the first");
        release.send(()).unwrap();
        first.await.unwrap();
        assert_eq!(second.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_future_without_a_caller_ends_at_a_checkpoint() {
        let apart = Apart(Arc::new(Semaphore::new(1)));
        let (release, released) = std::sync::mpsc::channel();
        let (done, is_done) = tokio::sync::oneshot::channel::<()>();
        let mut work = Box::pin(apart.run(async move {
            hold(&released);
            checkpoint().await;
            done.send(()).unwrap();
        }));
        assert!(futures::poll!(&mut work).is_pending());
        drop(work);
        release.send(()).unwrap();
        assert!(is_done.await.is_err(), "the second step does not run");
        // The thread is free again.
        assert_eq!(apart.run(async { 3 }).await.unwrap(), 3);
    }
}
