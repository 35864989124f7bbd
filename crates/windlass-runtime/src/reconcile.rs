//! What a person writes: a function from a key to an [`Action`].

use std::time::Duration;

use windlass_cache::ObjectKey;

use crate::{context::Context, error::BoxError};

/// What is to happen with a key after a reconcile that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    requeue_after: Option<Duration>,
    priority: Option<i32>,
}

impl Action {
    /// Nothing more until something changes.
    pub fn done() -> Self {
        Self { requeue_after: None, priority: None }
    }

    /// Once more after this time, or earlier if something changes.
    pub fn requeue_after(after: Duration) -> Self {
        Self { requeue_after: Some(after), priority: None }
    }

    /// The priority of the requeue; higher goes first, the default is 0.
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// When the key is queued again without any change, if it is.
    pub fn requeues_after(&self) -> Option<Duration> {
        self.requeue_after
    }

    pub(crate) fn priority(&self) -> Option<i32> {
        self.priority
    }
}

/// Brings the world to where the object under a key wants it.
///
/// A reconciler is given a key, not an object and not an event: it reads what is, compares, and writes what is missing.
/// It may be called for a key whose object is gone (`cx.get` says `None`), more often than something changes, and again after
/// any failure; it is never called twice at once for one key. So it must only depend on what it reads.
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
    /// The error; anything that `?` makes of other people's errors.
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
