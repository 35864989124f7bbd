//! The runs of a credential plugin.

use std::sync::Arc;

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};

/// The limit of runs at the same time: a run that hangs, and the run that is to replace the credentials of the run that hangs.
const MOST_RUNS: usize = 2;

/// Limits the runs of a plugin. kube cannot end a run that hangs.
pub(crate) struct PluginRuns(Arc<Semaphore>);

/// A run that counts. Dropped at the end of the run.
pub(crate) struct PluginPermit(#[expect(dead_code, reason = "counts until dropped")] OwnedSemaphorePermit);

impl PluginRuns {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_RUNS)))
    }

    /// Returns the permit of a further run, unless too many runs hang.
    pub(crate) fn begin(&self) -> Option<PluginPermit> {
        self.0.clone().try_acquire_owned().ok().map(PluginPermit)
    }
}

/// Runs a plugin on a thread of its own, so that a plugin that hangs holds up neither the shutdown of the runtime nor other work that blocks.
/// If no thread can be started, `run` is dropped.
pub(crate) fn spawn(run: impl FnOnce() + Send + 'static) {
    let runtime = Handle::current();
    let run = move || {
        let _context = runtime.enter();
        run();
    };
    if let Err(error) = std::thread::Builder::new().name("credential-plugin".to_owned()).spawn(run) {
        tracing::warn!(%error, "no thread for the credential plugin");
    }
}
