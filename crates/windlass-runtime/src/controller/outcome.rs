//! What a reconcile came to, and what follows from it.

use std::{any::Any, time::Duration};

use windlass_workqueue::{AddOptions, Item};

use crate::{
    error::{BoxError, chain, is_terminal},
    handler::QueueKey,
    metrics::OneController,
    reconcile::Action,
};

/// All that can come of a reconcile.
pub(crate) enum Outcome {
    Done,
    RequeueAfter { after: Duration, priority: Option<i32> },
    Failed(BoxError),
    Terminal(BoxError),
    Panicked(String),
    TimedOut(Duration),
}

impl From<Result<Action, BoxError>> for Outcome {
    fn from(result: Result<Action, BoxError>) -> Self {
        match result {
            Ok(action) => match action.requeues_after() {
                Some(after) => Self::RequeueAfter { after, priority: action.priority() },
                None => Self::Done,
            },
            Err(error) if is_terminal(error.as_ref()) => Self::Terminal(error),
            Err(error) => Self::Failed(error),
        }
    }
}

impl Outcome {
    pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without a message".to_owned());
        Self::Panicked(message)
    }

    /// The retry policy: every outcome, and what becomes of the key.
    pub(crate) fn settle<Q: QueueKey>(self, item: &Item<Q>, metrics: &OneController) {
        let again = AddOptions { priority: item.priority(), ..AddOptions::default() };
        match self {
            Self::Done => {
                metrics.success.inc();
                item.forget();
                tracing::debug!("reconciled");
            }
            Self::RequeueAfter { after, priority } => {
                metrics.requeue_after.inc();
                // What went well fails anew the next time it fails.
                item.forget();
                item.requeue(AddOptions {
                    after: Some(after),
                    priority: priority.unwrap_or(again.priority),
                    ..again
                });
                tracing::debug!(?after, "reconciled, to be requeued");
            }
            Self::Failed(error) => {
                metrics.error.inc();
                metrics.errors.inc();
                item.requeue(AddOptions { rate_limited: true, ..again });
                tracing::error!(
                    error = chain(error.as_ref()),
                    failures = item.num_requeues(),
                    "reconciler error"
                );
            }
            Self::Terminal(error) => {
                metrics.error.inc();
                metrics.errors.inc();
                metrics.terminal_errors.inc();
                // Not again by itself, and the failures so far are not forgotten: a change may not have cured it.
                tracing::error!(error = chain(error.as_ref()), "terminal reconciler error, not retried");
            }
            Self::Panicked(message) => {
                metrics.error.inc();
                metrics.errors.inc();
                metrics.panics.inc();
                item.requeue(AddOptions { rate_limited: true, ..again });
                tracing::error!(panic = message, failures = item.num_requeues(), "reconciler panicked");
            }
            Self::TimedOut(limit) => {
                metrics.error.inc();
                metrics.errors.inc();
                metrics.timeouts.inc();
                item.requeue(AddOptions { rate_limited: true, ..again });
                tracing::error!(?limit, failures = item.num_requeues(), "reconcile timed out");
            }
        }
    }
}
