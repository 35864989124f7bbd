//! What a manager starts and stops, in groups.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use tokio::{
    sync::mpsc,
    task::{Id, JoinSet},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::shared::RunContext;
use crate::error::BoxError;

/// When something is started: in this order, and stopped in the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Metrics and health, which tell of the rest.
    Http,
    /// Webhooks, which must answer before caches list: conversion stands between the two.
    Webhooks,
    /// Whatever else runs on every replica.
    Others,
    /// What must run on one replica at a time.
    LeaderElected,
}

impl Group {
    pub(super) const ALL: [Self; 4] = [Self::Http, Self::Webhooks, Self::Others, Self::LeaderElected];
}

/// Something that runs until it is told to stop, or until it is through.
///
/// An error of one ends the manager.
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

    /// When it is started and stopped.
    pub fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }
}

/// A runnable that ended by itself.
pub(super) struct Ended {
    pub(super) name: String,
    pub(super) result: Result<(), BoxError>,
}

/// Those of one group that run.
pub(super) struct RunningGroup {
    token: CancellationToken,
    tasks: JoinSet<()>,
    names: BTreeMap<Id, String>,
    ended: mpsc::UnboundedSender<Ended>,
}

impl RunningGroup {
    pub(super) fn new(ended: mpsc::UnboundedSender<Ended>) -> Self {
        Self { token: CancellationToken::new(), tasks: JoinSet::new(), names: BTreeMap::new(), ended }
    }

    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(super) fn start(&mut self, name: String, run: BoxFuture<'static, Result<(), BoxError>>) {
        let (ended, label) = (self.ended.clone(), name.clone());
        let task = self.tasks.spawn(async move {
            // A panic is told like an error: a part that is silently missing is worse than an end.
            let result = match futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(run)).await {
                Ok(result) => result,
                Err(_) => Err("panicked".into()),
            };
            let _ = ended.send(Ended { name: label, result });
        });
        self.names.insert(task.id(), name);
    }

    /// Says stop, waits, and aborts what has not ended by the deadline. Gives back the names of those.
    pub(super) async fn stop(&mut self, deadline: Option<Instant>) -> Vec<String> {
        self.token.cancel();
        let all_ended = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                let id = match ended {
                    Ok((id, ())) => id,
                    Err(error) => error.id(),
                };
                self.names.remove(&id);
            }
        };
        match deadline {
            Some(deadline) => {
                let _ = timeout_at(deadline, all_ended).await;
            }
            None => all_ended.await,
        }
        let late = std::mem::take(&mut self.names).into_values().collect();
        self.tasks.shutdown().await;
        late
    }
}
