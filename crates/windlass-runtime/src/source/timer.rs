//! A timer that enqueues keys.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{Source, SourceContext, lengthened};
use crate::{
    error::{BoxError, Result},
    handler::{HandlerContext, QueueKey},
};

/// The shortest period.
const SHORTEST: Duration = Duration::from_millis(1);

/// Enqueues keys again and again, beginning when the controller starts.
///
/// The periods are counted from the start, regardless of the time that the enqueued keys take (client-go's
/// `wait.NonSlidingUntil`); a missed tick is not made up for.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};
/// use std::time::Duration;
///
/// use windlass_runtime::source::Timer;
///
/// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
/// let controller = Controller::of::<ConfigMap>(reconcile)
///     // All objects every ten minutes: their counterparts elsewhere may have changed.
///     .source(Timer::every(Duration::from_mins(10), |cx| cx.lister::<ConfigMap>()?.keys()).jitter(0.1));
/// # let _ = controller;
/// ```
pub struct Timer<Q: QueueKey> {
    period: Duration,
    jitter: f64,
    keys: Keys<Q>,
}

type Keys<Q> = Arc<dyn Fn(&HandlerContext) -> std::result::Result<Vec<Q>, BoxError> + Send + Sync>;

impl<Q: QueueKey> Timer<Q> {
    /// Calls `keys` every `period`, and enqueues the returned keys. An error is logged, and a panic is logged
    /// and counted; the next tick comes in any case.
    pub fn every(
        period: Duration,
        keys: impl Fn(&HandlerContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> Self {
        let keys = Arc::new(move |cx: &HandlerContext| keys(cx).map_err(Into::into));
        Self { period: period.max(SHORTEST), jitter: 0.0, keys }
    }

    /// Makes each period longer by a random part, up to this fraction of the period, so that replicas and
    /// timers do not act in step. Default: 0.
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.jitter = fraction.clamp(0.0, 1.0);
        self
    }

    async fn run(self, cx: SourceContext<Q>) {
        let mut next = Instant::now();
        loop {
            sleep_until(next).await;
            match cx.supervisor.call("timer", || (self.keys)(&cx.map)) {
                Some(Ok(keys)) => cx.enqueue(keys, 0),
                Some(Err(error)) => {
                    tracing::warn!(controller = cx.controller, error, "a timer cannot tell its keys");
                }
                None => {}
            }
            let period = lengthened(self.period, self.jitter * cx.env.fraction());
            // A clock without such a late instant means never.
            let Some(tick) = next.checked_add(period) else { return };
            next = tick.max(Instant::now());
        }
    }
}

impl<Q: QueueKey> From<Timer<Q>> for Source<Q> {
    fn from(timer: Timer<Q>) -> Self {
        Self::new(move |cx| timer.run(cx))
    }
}

impl<Q: QueueKey> std::fmt::Debug for Timer<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").field("period", &self.period).finish_non_exhaustive()
    }
}
