//! What a manager starts and stops, in groups.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::mpsc,
    task::{Id, JoinSet},
    time::{Instant, timeout, timeout_at},
};

use super::{RunContext, Shutdown};
use crate::{error::BoxError, supervisor::panic_message};

/// The time that an aborted task may take to end. A task can only be aborted when it awaits something.
const ABORT_LIMIT: Duration = Duration::from_secs(1);

/// When a runnable is started. Groups are started in this order and stopped in the reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Metrics and health endpoints, which report on everything else.
    Http,
    /// Webhooks. They start before the caches, because a list may need a conversion webhook.
    Webhooks,
    /// Everything else that runs on every replica.
    Others,
    /// Everything that runs on the leader only.
    LeaderElected,
}

impl Group {
    pub(super) const ALL: [Self; 4] = [Self::Http, Self::Webhooks, Self::Others, Self::LeaderElected];
}

/// A part of an operator that runs until it is told to stop, or until it is done.
///
/// An error or a panic ends the manager.
pub struct Runnable {
    pub(super) name: String,
    pub(super) group: Group,
    pub(super) run: Box<dyn FnOnce(RunContext) -> BoxFuture<'static, Result<(), BoxError>> + Send>,
}

impl Runnable {
    /// Wraps a function. It runs on every replica unless [`group`](Self::group) says otherwise.
    pub fn new<F, Fut, E>(name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(RunContext) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self {
            name: name.into(),
            group: Group::Others,
            run: Box::new(move |cx| Box::pin(async move { run(cx).await.map_err(Into::into) })),
        }
    }

    /// Sets when it is started and stopped.
    pub fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }
}

/// A runnable that ended before it was told to stop.
pub(super) struct Ended {
    pub(super) name: String,
    pub(super) result: Result<(), BoxError>,
}

/// The running members of one group.
pub(super) struct RunningGroup {
    shutdown: Shutdown,
    tasks: JoinSet<()>,
    names: BTreeMap<Id, String>,
    ended: mpsc::UnboundedSender<Ended>,
}

/// How a group stopped.
#[derive(Debug, Default)]
pub(super) struct StoppedGroup {
    /// The members that did not end by the deadline and were aborted.
    pub(super) aborted: Vec<String>,
    /// Whether some of their code still runs: it blocks its thread, so it cannot be aborted.
    pub(super) still_running: bool,
}

impl RunningGroup {
    pub(super) fn new(ended: mpsc::UnboundedSender<Ended>) -> Self {
        Self { shutdown: Shutdown::new(), tasks: JoinSet::new(), names: BTreeMap::new(), ended }
    }

    pub(super) fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    pub(super) fn start(&mut self, name: String, run: BoxFuture<'static, Result<(), BoxError>>) {
        let (ended, label) = (self.ended.clone(), name.clone());
        let task = self.tasks.spawn(async move {
            let result = match AssertUnwindSafe(run).catch_unwind().await {
                Ok(result) => result,
                Err(payload) => Err(format!("panicked: {}", panic_message(payload.as_ref())).into()),
            };
            let _ = ended.send(Ended { name: label, result });
        });
        self.names.insert(task.id(), name);
    }

    /// Asks all members to stop, waits for them, and aborts those that have not ended by the deadline.
    ///
    /// Returns when no task of the group runs any more, unless one blocks its thread.
    pub(super) async fn stop(&mut self, deadline: Option<Instant>) -> StoppedGroup {
        self.shutdown.request();
        match deadline {
            Some(deadline) => {
                let _ = timeout_at(deadline, self.joined()).await;
            }
            None => self.joined().await,
        }
        let aborted: Vec<String> = self.names.values().cloned().collect();
        self.tasks.abort_all();
        let all_ended = async {
            self.joined().await;
            self.shutdown.tracked_ended().await;
        };
        let still_running = timeout(ABORT_LIMIT, all_ended).await.is_err();
        StoppedGroup { aborted, still_running }
    }

    async fn joined(&mut self) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            let id = match ended {
                Ok((id, ())) => id,
                Err(error) => error.id(),
            };
            self.names.remove(&id);
        }
    }
}
