//! The signal that asks the parts of an operator to stop.

use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TrackedFuture},
};

/// The receiving side of a shutdown signal. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown {
    token: CancellationToken,
    /// Tasks that the manager waits for, besides the runnables that spawned the tasks.
    tracker: TaskTracker,
}

impl Shutdown {
    pub(crate) fn new() -> Self {
        Self { token: CancellationToken::new(), tracker: TaskTracker::new() }
    }

    /// Waits until the shutdown is requested. Work in progress may be finished; the manager limits the time for that.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// Returns whether the shutdown is requested.
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Returns a signal that is requested with this signal, or alone.
    pub(crate) fn child(&self) -> Self {
        Self { token: self.token.child_token(), tracker: self.tracker.clone() }
    }

    pub(crate) fn request(&self) {
        self.token.cancel();
    }

    /// Makes the manager wait for a future that a runnable spawns. Dropping the runnable aborts such a task but does not
    /// wait for it.
    pub(crate) fn track<F: Future>(&self, future: F) -> TrackedFuture<F> {
        self.tracker.track_future(future)
    }

    /// Waits until all tracked futures have ended or were dropped.
    pub(crate) async fn tracked_ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
