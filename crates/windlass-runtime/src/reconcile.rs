//! The reconciler: the user's function from a key to an [`Action`].

use std::time::Duration;

use windlass_cache::ObjectKey;

use crate::{context::Context, error::BoxError};

/// The result of a successful reconcile: whether and when the key is reconciled again without a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    requeue_after: Option<Duration>,
    priority: Option<i32>,
}

impl Action {
    /// Reconciles the key again only after a change.
    pub fn done() -> Self {
        Self { requeue_after: None, priority: None }
    }

    /// Reconciles the key again after this time, or earlier after a change. Zero means at once.
    pub fn requeue_after(after: Duration) -> Self {
        Self { requeue_after: Some(after), priority: None }
    }

    /// Sets the priority of the requeue. Keys of higher priority go first. Default: the priority that the key had.
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Returns the delay after which the key is reconciled again; `None` if only a change reconciles the key.
    pub fn requeues_after(&self) -> Option<Duration> {
        self.requeue_after
    }

    pub(crate) fn priority(&self) -> Option<i32> {
        self.priority
    }
}

/// Brings the cluster closer to the state that the object under a key specifies.
///
/// A reconciler gets a key, neither an object nor an event: the reconciler reads the current state, compares, and writes the difference.
/// A reconciler may be called for a key without an object (`cx.get` returns `None`), more often than objects change, and again after
/// any failure, but never twice at once for the same key. A reconciler must depend only on the state that it reads.
///
/// Any `async fn(ObjectKey, Context<K>) -> Result<Action, E>` is a reconciler. A reconciler with state is a struct with this trait:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::{Action, Context, Error, ObjectKey, Reconciler};
///
/// struct Mirror {
///     prefix: String,
/// }
///
/// impl Reconciler<ConfigMap> for Mirror {
///     type Error = Error;
///
///     async fn reconcile(&self, key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action, Error> {
///         let Some(config) = cx.get(&key)? else { return Ok(Action::done()) };
///         tracing::info!(prefix = self.prefix, keys = config.data.as_ref().map_or(0, |data| data.len()));
///         Ok(Action::done())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconciler of `{K}` with keys `{Q}`",
    note = "a reconciler is an `async fn(ObjectKey, Context<{K}>) -> Result<Action, E>` where `E: Into<BoxError>`, \
            or a type that implements `Reconciler<{K}>`"
)]
pub trait Reconciler<K, Q = ObjectKey>: Send + Sync + 'static {
    /// The error: any type that converts into [`BoxError`].
    type Error: Into<BoxError>;

    /// Reconciles a key.
    fn reconcile(&self, key: Q, cx: Context<K>) -> impl Future<Output = Result<Action, Self::Error>> + Send;
}

impl<K, Q, F, Fut, E> Reconciler<K, Q> for F
where
    F: Fn(Q, Context<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send,
    E: Into<BoxError>,
{
    type Error = E;

    fn reconcile(&self, key: Q, cx: Context<K>) -> impl Future<Output = Result<Action, E>> + Send {
        self(key, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requeue_has_a_delay_and_a_priority() {
        let action = Action::requeue_after(Duration::from_secs(3)).with_priority(5);
        assert_eq!((action.requeues_after(), action.priority()), (Some(Duration::from_secs(3)), Some(5)));
        assert_eq!((Action::done().requeues_after(), Action::done().priority()), (None, None));
    }
}
