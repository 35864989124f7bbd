//! The outcomes of a reconcile, and the consequences of each outcome.

use std::{any::Any, time::Duration};

use windlass_workqueue::{AddOptions, Item};

use crate::{
    error::{BoxError, chain, is_conflict, is_terminal, requested_retry, server_retry_after},
    handler::QueueKey,
    metrics::OneController,
    reconcile::Action,
    supervisor::panic_message,
};

/// The number of failures in a row at which a conflict becomes a warning.
const CONFLICTS_TO_REPORT: u32 = 10;

/// The outcome of a reconcile.
pub(crate) enum Outcome {
    Done,
    RequeueAfter {
        after: Duration,
        priority: Option<i32>,
    },
    Failed(BoxError),
    Conflict(BoxError),
    Terminal(BoxError),
    /// The object of the key does not decode. The error has been logged.
    Undecodable(BoxError),
    Panicked(String),
    TimedOut(Duration),
    /// This replica may not work on the key any more.
    Revoked,
}

impl From<Result<Action, BoxError>> for Outcome {
    fn from(result: Result<Action, BoxError>) -> Self {
        match result {
            Ok(action) => match action.requeues_after() {
                Some(after) => Self::RequeueAfter { after, priority: action.priority() },
                None => Self::Done,
            },
            Err(error) if is_terminal(error.as_ref()) => Self::Terminal(error),
            Err(error) if is_conflict(error.as_ref()) => Self::Conflict(error),
            Err(error) => Self::Failed(error),
        }
    }
}

impl Outcome {
    pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> Self {
        Self::Panicked(panic_message(payload).to_owned())
    }

    /// Returns the error of a reconcile that failed.
    pub(super) fn error(&self) -> Option<String> {
        match self {
            Self::Done | Self::RequeueAfter { .. } | Self::Revoked => None,
            Self::Failed(error)
            | Self::Conflict(error)
            | Self::Terminal(error)
            | Self::Undecodable(error) => Some(chain(error.as_ref())),
            Self::Panicked(message) => Some(format!("panicked: {message}")),
            Self::TimedOut(limit) => Some(format!("timed out after {limit:?}")),
        }
    }

    /// Implements the retry policy: decides for every outcome whether and when the key is reconciled again.
    pub(crate) fn settle<Q: QueueKey>(self, item: &Item<Q>, metrics: &OneController) {
        let again = AddOptions::new().priority(item.priority());
        match self {
            Self::Done => {
                metrics.success.inc();
                item.forget();
                tracing::debug!("reconciled");
            }
            Self::RequeueAfter { after, priority } => {
                metrics.requeue_after.inc();
                // A success resets the failures: the next failure has the shortest delay.
                item.forget();
                item.requeue(again.priority(priority.unwrap_or(item.priority())).after(after));
                tracing::debug!(?after, "reconciled, to be requeued");
            }
            Self::Failed(error) => {
                metrics.error.inc();
                metrics.errors.inc();
                let requested = requested_retry(error.as_ref());
                // An overloaded server names a time in which no request of the key helps.
                let server = server_retry_after(error.as_ref()).filter(|_| requested.is_none());
                item.requeue(match requested {
                    Some(after) => again.after(after),
                    None => again.rate_limited().at_least(server.unwrap_or_default()),
                });
                tracing::error!(
                    error = chain(error.as_ref()),
                    failures = item.num_requeues(),
                    retry_in = requested.map(tracing::field::debug),
                    // The key waits at least that long: the back-off may be longer.
                    server_asks = server.map(tracing::field::debug),
                    "reconciler error"
                );
            }
            Self::Conflict(error) => {
                metrics.requeue.inc();
                metrics.conflicts.inc();
                item.requeue(again.rate_limited());
                // Another writer was first: the next reconcile reads that write. Many conflicts in a row are
                // worth a look.
                let (error, failures) = (chain(error.as_ref()), item.num_requeues());
                if failures.is_multiple_of(CONFLICTS_TO_REPORT) {
                    tracing::warn!(error, failures, "conflict after conflict, requeued");
                } else {
                    tracing::debug!(error, failures, "conflict, requeued");
                }
            }
            Self::Terminal(error) => {
                metrics.error.inc();
                metrics.errors.inc();
                metrics.terminal_errors.inc();
                // Not retried. The failures so far still count: the next change may not cure the error.
                tracing::error!(error = chain(error.as_ref()), "terminal reconciler error, not retried");
            }
            Self::Undecodable(_) => {
                metrics.error.inc();
                metrics.errors.inc();
                metrics.terminal_errors.inc();
                tracing::debug!("not retried until the object decodes");
            }
            Self::Revoked => {
                item.forget();
                tracing::info!(
                    "reconcile cancelled: this replica does not lead, or does not own the key, any more"
                );
            }
            Self::Panicked(message) => {
                metrics.error.inc();
                metrics.errors.inc();
                metrics.panics.inc();
                item.requeue(again.rate_limited());
                tracing::error!(panic = message, failures = item.num_requeues(), "reconciler panicked");
            }
            Self::TimedOut(limit) => {
                metrics.error.inc();
                metrics.errors.inc();
                metrics.timeouts.inc();
                item.requeue(again.rate_limited());
                tracing::error!(?limit, failures = item.num_requeues(), "reconcile timed out");
            }
        }
    }
}
