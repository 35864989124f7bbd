//! The controller of the reconcile in the current task.

use std::sync::Arc;

use crate::metrics::Metrics;

tokio::task_local! {
    static CURRENT: Arc<Identity>;
}

/// Tells the controllers of a process apart.
#[derive(Clone)]
pub(crate) struct Identity {
    name: String,
    /// The metrics of the controller's manager.
    metrics: Metrics,
}

impl Identity {
    pub(super) fn new(name: &str, metrics: &Metrics) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), metrics: metrics.clone() })
    }

    /// Returns a copy for one worker. Workers do not contend for the reference count of the copy.
    pub(super) fn of_worker(&self) -> Arc<Self> {
        Arc::new(self.clone())
    }

    /// Runs a reconcile of this controller.
    pub(super) fn run<F: Future>(self: &Arc<Self>, reconcile: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self.clone(), reconcile)
    }
}

/// Returns whether the current task runs a reconcile of the controller with this name, in the manager with
/// these metrics.
pub(crate) fn reconciles(name: &str, metrics: &Metrics) -> bool {
    CURRENT.try_with(|current| current.name == name && current.metrics.is_same(metrics)).unwrap_or(false)
}
