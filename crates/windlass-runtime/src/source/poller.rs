//! A poller of an external system.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::time::{sleep, timeout};
use windlass_workqueue::LOW_PRIORITY;

use super::{Source, SourceContext, lengthened};
use crate::{error::BoxError, handler::QueueKey, supervisor::panic_message};

/// The longest pause after polls that fail, unless the interval is longer.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The first pause after a poll that fails, unless the interval is shorter.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Polls another system for the system's state, and enqueues the keys of changes.
///
/// The state is a map from keys to values that differ when something changed: versions, times of change,
/// hashes. A key is enqueued when the key is new, when the value differs from the last value, and when the
/// key is gone. The keys of the first poll have a low priority, like the keys of the first list of a watch.
/// All values are kept until the next poll: keep values small.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};
/// use std::{collections::BTreeMap, io, time::Duration};
///
/// use windlass_runtime::source::Poller;
///
/// /// Asks for the tag of each network.
/// async fn networks() -> io::Result<BTreeMap<ObjectKey, String>> {
///     Ok(BTreeMap::from([(ObjectKey::namespaced("default", "blue"), "rev-1".to_owned())]))
/// }
///
/// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
/// let controller = Controller::of::<ConfigMap>(reconcile)
///     .source(Poller::every(Duration::from_secs(30), networks).jitter(0.2));
/// # let _ = controller;
/// ```
pub struct Poller<Q: QueueKey, V> {
    interval: Duration,
    jitter: f64,
    limit: Duration,
    poll: Poll<Q, V>,
}

type Poll<Q, V> = Arc<dyn Fn() -> BoxFuture<'static, Result<BTreeMap<Q, V>, BoxError>> + Send + Sync>;

impl<Q: QueueKey, V: PartialEq + Send + Sync + 'static> Poller<Q, V> {
    /// Polls at the start, and then again `interval` after a poll has ended.
    ///
    /// A poll that fails or panics has no effect; the failure is logged, and the poll is repeated after 1 s,
    /// 2 s, 4 s and so on up to 5 minutes, or the interval if the interval is longer.
    pub fn every<F, Fut, E>(interval: Duration, poll: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BTreeMap<Q, V>, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let poll: Poll<Q, V> = Arc::new(move || {
            let state = poll();
            async move { state.await.map_err(Into::into) }.boxed()
        });
        Self { interval, jitter: 0.0, limit: Duration::from_mins(1), poll }
    }

    /// Makes each pause longer by a random part, up to this fraction of the pause, so that replicas do not
    /// poll in step. Default: 0.
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.jitter = fraction.clamp(0.0, 1.0);
        self
    }

    /// Sets the time limit of a poll. A longer poll counts as failed. Default: 1 minute.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    async fn run(self, cx: SourceContext<Q>) {
        let mut polled = Polled::new(self.interval);
        loop {
            match self.poll_once(&cx).await {
                Ok(state) => {
                    let priority = if polled.last.is_none() { LOW_PRIORITY } else { 0 };
                    cx.enqueue(polled.changed(state), priority);
                }
                Err(error) => {
                    polled.failed();
                    tracing::warn!(
                        controller = cx.controller,
                        error,
                        failures = polled.failures,
                        "a poll failed"
                    );
                }
            }
            sleep(lengthened(polled.pause(), self.jitter * cx.env.fraction())).await;
        }
    }

    async fn poll_once(&self, cx: &SourceContext<Q>) -> Result<BTreeMap<Q, V>, BoxError> {
        let poll = AssertUnwindSafe(async { (self.poll)().await }).catch_unwind();
        match timeout(self.limit, poll).await {
            Ok(Ok(state)) => state,
            Ok(Err(payload)) => {
                cx.supervisor.count_panic("poller");
                Err(format!("panicked: {}", panic_message(payload.as_ref())).into())
            }
            Err(_) => Err(format!("took longer than {:?}", self.limit).into()),
        }
    }
}

/// The results of the last polls, as a state machine without a clock.
pub(super) struct Polled<Q, V> {
    interval: Duration,
    last: Option<BTreeMap<Q, V>>,
    /// The failures since the last success.
    failures: u32,
}

impl<Q: QueueKey, V: PartialEq> Polled<Q, V> {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, last: None, failures: 0 }
    }

    /// Takes the state that a poll found, and returns the keys that are new, changed or gone.
    pub(super) fn changed(&mut self, state: BTreeMap<Q, V>) -> Vec<Q> {
        self.failures = 0;
        let last = self.last.take().unwrap_or_default();
        let differs = |(key, value): &(&Q, &V)| last.get(*key) != Some(*value);
        let mut keys: Vec<Q> = state.iter().filter(differs).map(|(key, _)| key.clone()).collect();
        keys.extend(last.into_keys().filter(|key| !state.contains_key(key)));
        self.last = Some(state);
        keys
    }

    pub(super) fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Returns the time until the next poll.
    pub(super) fn pause(&self) -> Duration {
        let Some(doublings) = self.failures.checked_sub(1) else { return self.interval };
        let longest = LONGEST_PAUSE.max(self.interval);
        FIRST_PAUSE.min(self.interval).saturating_mul(2u32.saturating_pow(doublings)).min(longest)
    }
}

impl<Q: QueueKey, V: PartialEq + Send + Sync + 'static> From<Poller<Q, V>> for Source<Q> {
    fn from(poller: Poller<Q, V>) -> Self {
        Self::new(move |cx| poller.run(cx))
    }
}

impl<Q: QueueKey, V> std::fmt::Debug for Poller<Q, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller").field("interval", &self.interval).finish_non_exhaustive()
    }
}
