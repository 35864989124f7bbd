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
    /// Reconciles the key again only when something changes.
    pub fn done() -> Self {
        Self { requeue_after: None, priority: None }
    }

    /// Reconciles the key again after this time, or earlier if something changes. Zero means at once.
    pub fn requeue_after(after: Duration) -> Self {
        Self { requeue_after: Some(after), priority: None }
    }

    /// Sets the priority of the requeue. Keys of higher priority go first. Default: the priority that the key had.
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Returns the delay after which the key is reconciled again, if it is.
    pub fn requeues_after(&self) -> Option<Duration> {
        self.requeue_after
    }

    pub(crate) fn priority(&self) -> Option<i32> {
        self.priority
    }
}

/// Changes the cluster until it is as the object under a key specifies.
///
/// A reconciler gets a key, neither an object nor an event: it reads the current state, compares, and writes what is missing.
/// It may be called for a key whose object is gone (`cx.get` returns `None`), more often than something changes, and again after
/// any failure; it is never called twice at once for one key. It must depend only on what it reads.
///
/// Any `async fn(ObjectKey, Context<K>) -> Result<Action, E>` is one. For state of its own, implement it for a struct:
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

    /// Reconciles one key.
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
