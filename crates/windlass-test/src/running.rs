//! A manager that runs in the background of a test.

use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_runtime::{Error, Manager, Result};

use crate::reconcile_errors::ReconcileErrors;

/// A guard for a manager that [`TestCluster::run`](crate::TestCluster::run) started.
///
/// Dropping the value asks the manager to stop, without waiting for the end. Use [`stop`](Self::stop) in a
/// test that asserts something about the end.
///
/// # Panics
/// When the value is dropped after the manager failed: with the manager's error. The drop does not panic
/// during another panic of the test.
#[must_use = "the manager stops when this guard is dropped"]
pub struct RunningManager {
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<Result<()>>>,
    state: Arc<State>,
}

/// The state of a manager for the waits of a cluster.
#[derive(Default)]
pub(crate) struct State {
    /// The error that ended the manager, as text.
    pub(crate) failure: OnceLock<String>,
    pub(crate) reconcile_errors: ReconcileErrors,
}

impl RunningManager {
    /// Starts `manager` on the current tokio runtime.
    pub(crate) fn start(manager: Manager) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let state = Arc::new(State::default());
        let observer = Arc::clone(&state);
        let manager =
            manager.observe_reconciles(move |reconcile| observer.reconcile_errors.observe(reconcile));
        let manager = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
        let task = tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                let result = manager.await.unwrap_or_else(|panic| Err(Error::other(panic)));
                if let Err(error) = &result {
                    state.failure.get_or_init(|| error.to_string());
                }
                result
            }
        });
        Self { stop: Some(stop), task: Some(task), state }
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Stops the manager gracefully and returns the result of the manager.
    pub async fn stop(mut self) -> Result<()> {
        self.stop = None;
        self.result().await
    }

    /// Waits until the manager ends without a request to stop, and returns the manager's result.
    pub async fn ended(mut self) -> Result<()> {
        self.result().await
    }

    /// Returns whether the manager has ended, successfully or not.
    pub fn is_finished(&self) -> bool {
        self.task.as_ref().is_none_or(JoinHandle::is_finished)
    }

    async fn result(&mut self) -> Result<()> {
        match self.task.take() {
            Some(task) => task.await.unwrap_or_else(|panic| Err(Error::other(panic))),
            None => Ok(()),
        }
    }
}

impl Drop for RunningManager {
    fn drop(&mut self) {
        // The result was not handed to the test.
        if self.task.is_some()
            && let Some(failure) = self.state.failure.get()
            && !thread::panicking()
        {
            panic!("the manager failed: {failure}");
        }
    }
}
