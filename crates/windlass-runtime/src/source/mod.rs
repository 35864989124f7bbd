//! Sources of keys other than watches: events of another system, a poller, a timer.

mod event_stream;
mod poller;
mod timer;

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::{
    Stream, StreamExt,
    future::{BoxFuture, FutureExt},
};
use prometheus_client::metrics::counter::Counter;
use windlass_workqueue::{AddOptions, WorkQueue};

pub use self::{
    event_stream::{EventSender, EventStream},
    poller::Poller,
    timer::Timer,
};
use crate::{
    env::Env,
    handler::{HandlerContext, QueueKey},
    supervisor::Supervisor,
};

/// A source of keys other than a watch. [`Controller::source`](crate::Controller::source) adds a source to a
/// controller.
///
/// [`EventStream`], [`Poller`] and [`Timer`] are sources, and a stream of keys is a source, too:
/// [`Source::keys`].
pub struct Source<Q: QueueKey> {
    run: Box<dyn FnOnce(SourceContext<Q>) -> BoxFuture<'static, ()> + Send>,
}

/// The target of a source.
#[derive(Clone)]
pub(crate) struct SourceContext<Q: QueueKey> {
    pub(crate) controller: String,
    pub(crate) queue: WorkQueue<Q>,
    pub(crate) map: HandlerContext,
    pub(crate) supervisor: Supervisor,
    pub(crate) env: Env,
    /// Counts the events that are given up.
    pub(crate) unmapped_events: Counter,
}

/// Returns a duration that is longer by a fraction of the duration.
fn lengthened(duration: Duration, fraction: f64) -> Duration {
    let more = Duration::try_from_secs_f64(duration.as_secs_f64() * fraction);
    duration.saturating_add(more.unwrap_or(Duration::MAX))
}

impl<Q: QueueKey> Source<Q> {
    fn new<Fut>(run: impl FnOnce(SourceContext<Q>) -> Fut + Send + 'static) -> Self
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { run: Box::new(move |cx| run(cx).boxed()) }
    }

    /// Makes a source from a stream of keys. After a panic of the stream, the controller and with it the
    /// manager end: a stream cannot be restarted.
    pub fn keys(keys: impl Stream<Item = Q> + Send + 'static) -> Self {
        Self::new(move |cx| async move {
            let mut keys = std::pin::pin!(keys);
            while let Some(key) = keys.next().await {
                cx.queue.add(key);
                // A stream that is always ready never waits.
                tokio::task::consume_budget().await;
            }
        })
    }

    /// Feeds the queue until the source ends.
    pub(crate) fn run(self, cx: SourceContext<Q>) -> BoxFuture<'static, ()> {
        (self.run)(cx)
    }
}

impl<Q: QueueKey> SourceContext<Q> {
    fn enqueue(&self, keys: impl IntoIterator<Item = Q>, priority: i32) {
        for key in keys {
            self.queue.add_with(key, AddOptions::new().priority(priority));
        }
    }
}

impl<Q: QueueKey> std::fmt::Debug for Source<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}
