//! A right to work that ends at a deadline unless prolonged.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::Instant;

/// A right to work that ends at a deadline unless prolonged. Clones share the right.
///
/// A task that waits for a timer or a message notices a loss late if the process was suspended, because
/// another task may run first. Work that polls [`ended`](Self::ended) first looks at the clock before each
/// step, and therefore does nothing after the deadline.
#[derive(Clone)]
pub(crate) struct LeaderDeadline(Arc<Inner>);

struct Inner {
    begun: Instant,
    /// Nanoseconds since `begun`. [`NEVER`] if the right does not end.
    deadline: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl LeaderDeadline {
    /// Creates a right that does not end.
    pub(crate) fn open() -> Self {
        Self(Arc::new(Inner { begun: Instant::now(), deadline: AtomicU64::new(NEVER) }))
    }

    /// Ends the right now.
    pub(crate) fn close(&self) {
        self.0.deadline.store(0, Ordering::Release);
    }

    /// Lets the right end at `deadline`.
    pub(crate) fn set(&self, deadline: Instant) {
        let nanoseconds = deadline.saturating_duration_since(self.0.begun).as_nanos();
        // 584 years fit.
        let nanoseconds = u64::try_from(nanoseconds).unwrap_or(NEVER - 1);
        self.0.deadline.store(nanoseconds, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        match self.0.deadline.load(Ordering::Acquire) {
            NEVER => true,
            deadline => self.0.begun.elapsed() < Duration::from_nanos(deadline),
        }
    }

    /// Completes if the right has ended at the time of the poll. Registers no waker: poll the future right
    /// before each poll of the work.
    pub(crate) async fn ended(&self) {
        poll_fn(|_| if self.is_open() { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_right_ends_at_its_deadline_and_can_be_prolonged() {
        let right = LeaderDeadline::open();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(right.is_open());
        right.set(Instant::now() + Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(right.is_open());
        right.set(Instant::now() + Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(right.is_open());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!right.is_open());
        right.set(Instant::now() + Duration::from_secs(1));
        right.close();
        assert!(!right.is_open());
        right.ended().await;
    }
}
