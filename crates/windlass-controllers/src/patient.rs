//! Conflicts are no failures.

use std::time::Duration;

use windlass_runtime::{Action, Context, Error, QueueKey, Reconciler, Result};

/// When to look again if the change that was in the way is not seen before.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A reconciler for which a conflict is the usual: somebody else wrote first, so it looks at what is there now.
///
/// A node, its scheduler and the owners of its pods write to the same objects all the time; errors in the log would cry wolf.
pub(crate) struct Patient<R>(pub R);

impl<K, Q, R> Reconciler<K, Q> for Patient<R>
where
    K: 'static,
    Q: QueueKey,
    R: Reconciler<K, Q, Error = Error>,
{
    type Error = Error;

    async fn reconcile(&self, key: Q, cx: Context<K>) -> Result<Action> {
        match self.0.reconcile(key, cx).await {
            Err(conflict) if conflict.is_conflict() => {
                tracing::debug!(%conflict, "somebody else wrote first");
                Ok(Action::requeue_after(LOOK_AGAIN))
            }
            other => other,
        }
    }
}
