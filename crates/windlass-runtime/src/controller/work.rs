//! The work of a controller that has been prepared.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::Running;
use crate::{error::Result, handler::QueueKey, shutdown::Shutdown, source::Source};

/// A prepared controller, with an erased key type.
pub(crate) trait ControllerWork: Send + Sync {
    /// Starts to fill the queue, and waits until the first lists have ended. Returns at once if both have been done.
    fn start(self: Arc<Self>) -> BoxFuture<'static, Result<()>>;

    /// Reconciles until `shutdown`, then completes the reconciles under way. Starts to fill the queue before.
    ///
    /// A leader that becomes a follower drops the future. A later call, for the next term, begins afresh: every object is reconciled again.
    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<()>>;
}

/// A prepared controller. Dropping the value ends the watches and sources.
pub(super) struct Work<Q: QueueKey> {
    running: Arc<Running<Q>>,
    /// The sources, until the sources have started.
    sources: Mutex<Vec<Source<Q>>>,
    /// Held while the start waits for the first lists. True if the sources have started.
    started: tokio::sync::Mutex<bool>,
    /// True if an earlier term has begun.
    has_run: AtomicBool,
}

impl<Q: QueueKey> Work<Q> {
    pub(super) fn new(running: Arc<Running<Q>>, sources: Vec<Source<Q>>) -> Arc<Self> {
        Arc::new(Self {
            running,
            sources: Mutex::new(sources),
            started: tokio::sync::Mutex::default(),
            has_run: AtomicBool::default(),
        })
    }
}

impl<Q: QueueKey> ControllerWork for Work<Q> {
    fn start(self: Arc<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let mut started = self.started.lock().await;
            self.running.start_watches().await?;
            if !std::mem::replace(&mut *started, true) {
                for source in std::mem::take(&mut *self.sources.lock()) {
                    self.running.follow(source);
                }
                self.running.join_group();
            }
            Ok(())
        })
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            if self.has_run.swap(true, Ordering::AcqRel) {
                // Another replica may have led in between, and left work undone.
                self.running.restart_watches();
            }
            match shutdown.token().run_until_cancelled(self.clone().start()).await {
                Some(Ok(())) => self.running.clone().work(shutdown).await,
                not_started => {
                    self.running.stop_sources();
                    not_started.unwrap_or(Ok(()))
                }
            }
        })
    }
}

impl<Q: QueueKey> Drop for Work<Q> {
    fn drop(&mut self) {
        self.running.stop_sources();
    }
}
