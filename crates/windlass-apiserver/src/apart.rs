//! Futures with long polls, run without blocking the workers of the runtime.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::Notify;
use tokio::task::{JoinError, spawn_blocking};

/// Runs a future: each poll on a blocking thread of the runtime, and without any thread while the future waits.
///
/// # Errors
///
/// The runtime stops.
pub(crate) async fn poll_apart<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut future: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    loop {
        let waker = waker.clone();
        let poll = move || {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
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
        let long = tokio::spawn(poll_apart(async move {
            let released = released.recv_timeout(stretched(Duration::from_secs(20)));
            tokio::task::yield_now().await;
            released
        }));
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
            let waiting = tokio::spawn(poll_apart(heard));
            // The only blocking thread is free while the other future waits.
            poll_apart(async { say.send(1).unwrap() }).await.unwrap();
            assert_eq!(waiting.await.unwrap().unwrap(), Ok(1));
        });
    }
}
