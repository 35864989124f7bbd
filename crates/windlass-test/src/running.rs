//! A manager that runs in the background of a test.

use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_runtime::{Error, Manager, Result};

/// A guard for a manager that [`TestCluster::run`](crate::TestCluster::run) started.
///
/// Dropping it asks the manager to stop, without waiting for the end. Use [`stop`](Self::stop) in a test that asserts
/// something about the end.
///
/// # Panics
/// When it is dropped after the manager failed: with the manager's error. It does not panic if the test panics already.
#[must_use = "the manager stops when this guard is dropped"]
pub struct RunningManager {
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<Result<()>>>,
    failure: Arc<Failure>,
}

/// The error that ended a manager, as text.
type Failure = OnceLock<String>;

impl RunningManager {
    /// Starts `manager` on the current tokio runtime.
    pub(crate) fn start(manager: Manager) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let manager = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
        let failure = Arc::new(Failure::new());
        let task = tokio::spawn({
            let failure = Arc::clone(&failure);
            async move {
                let result = manager.await.unwrap_or_else(|panic| Err(Error::other(panic)));
                if let Err(error) = &result {
                    failure.get_or_init(|| error.to_string());
                }
                result
            }
        });
        Self { stop: Some(stop), task: Some(task), failure }
    }

    /// Stops the manager gracefully and returns its result.
    pub async fn stop(mut self) -> Result<()> {
        self.stop = None;
        self.result().await
    }

    /// Waits until the manager ends without being asked to, and returns its result.
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
            && let Some(failure) = self.failure.get()
            && !thread::panicking()
        {
            panic!("the manager failed: {failure}");
        }
    }
}

/// The managers whose guards still exist.
#[derive(Default)]
pub(crate) struct RunningManagers(Mutex<Vec<Weak<Failure>>>);

impl RunningManagers {
    pub(crate) fn add(&self, manager: &RunningManager) {
        let mut failures = self.0.lock();
        failures.retain(|failure| failure.strong_count() > 0);
        failures.push(Arc::downgrade(&manager.failure));
    }

    /// Returns the error of the first manager that failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.0.lock().iter().find_map(|failure| failure.upgrade()?.get().cloned())
    }
}
