//! Events of another system.

use std::{sync::Arc, time::Duration};

use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream, FuturesUnordered},
};
use tokio::{sync::mpsc, time::sleep};

use super::{Source, SourceContext};
use crate::{
    error::{Error, Result},
    handler::{HandlerContext, QueueKey},
};

/// The number of events that an [`EventSender`] holds for the controller, as in controller-runtime.
const CHANNEL: usize = 1024;

/// The number of events that wait to be mapped again, at most. While 1024 events wait, no new events are taken.
const FAILING: usize = 1024;

/// How often an event is mapped before the event is given up: for about seven minutes.
const TRIES: u32 = 20;

/// How often an event is mapped while [`FAILING`] events wait: for about five seconds. The events behind must not wait for ever.
const TRIES_OF_MANY: u32 = 10;

/// The pause before an event is mapped again; doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The longest pause before an event is mapped again.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Events of another system, of any type, mapped to keys: controller-runtime's `source.Channel`.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};
/// use windlass_runtime::source::EventStream;
///
/// struct Order { customer: String, paid: bool }
///
/// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
/// let (orders, events) = EventStream::channel(|order: &Order, _| {
///     Ok(vec![ObjectKey::namespaced("default", &order.customer)])
/// });
/// let controller = Controller::of::<ConfigMap>(reconcile).source(events.predicate(|order| order.paid));
/// // Elsewhere, for each order that comes in: `orders.send(order).await?`
/// # let _ = (controller, orders);
/// ```
pub struct EventStream<T, Q: QueueKey> {
    events: BoxStream<'static, T>,
    mapper: Mapper<T, Q>,
    predicates: Vec<EventPredicate<T>>,
}

type EventPredicate<T> = Box<dyn Fn(&T) -> bool + Send + Sync>;

type Mapper<T, Q> = Arc<dyn Fn(&T, &HandlerContext) -> Result<Vec<Q>> + Send + Sync>;

impl<T: Send + Sync + 'static, Q: QueueKey> EventStream<T, Q> {
    /// Maps the events of a stream. After a panic of the stream, the controller and with it the manager end:
    /// a stream cannot be restarted.
    ///
    /// After a failure or panic of `mapper`, the event is mapped again with back-off, and other events are
    /// mapped meanwhile. After 20 failures in about seven minutes, the event is given up, with an error in
    /// the log and a count in `windlass_unmapped_events_total`. While 1024 events wait to be mapped again, no
    /// new events are taken, and an event is given up after ten failures in about five seconds.
    pub fn new(
        events: impl Stream<Item = T> + Send + 'static,
        mapper: impl Fn(&T, &HandlerContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> Self {
        Self { events: events.boxed(), mapper: Arc::new(mapper), predicates: Vec::new() }
    }

    /// Maps events from a sender. 1024 events wait for the controller; then the sender waits.
    pub fn channel(
        mapper: impl Fn(&T, &HandlerContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> (EventSender<T>, Self) {
        let (sender, receiver) = mpsc::channel(CHANNEL);
        let events = stream::unfold(receiver, |mut receiver| async move {
            let event = receiver.recv().await?;
            Some((event, receiver))
        });
        (EventSender { sender }, Self::new(events, mapper))
    }

    /// Drops the events that do not match. Several predicates must all match.
    pub fn predicate(mut self, matches: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Box::new(matches));
        self
    }

    async fn run(mut self, cx: SourceContext<Q>) {
        let mut failing = FuturesUnordered::new();
        let mut open = true;
        while open || !failing.is_empty() {
            let (event, failures) = tokio::select! {
                biased;
                Some(again) = failing.next(), if !failing.is_empty() => again,
                event = self.events.next(), if open && failing.len() < FAILING => {
                    let Some(event) = event else {
                        open = false;
                        continue;
                    };
                    (event, 0)
                }
            };
            if !self.map(&event, &cx) {
                let tries = if failing.len() + 1 < FAILING { TRIES } else { TRIES_OF_MANY };
                if failures + 1 >= tries {
                    tracing::error!(
                        controller = cx.controller,
                        tries = failures + 1,
                        "an event is given up: it cannot be mapped to keys"
                    );
                    cx.unmapped_events.inc();
                    continue;
                }
                let pause = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(failures)).min(LONGEST_PAUSE);
                failing.push(async move {
                    sleep(pause).await;
                    (event, failures.saturating_add(1))
                });
            }
            // A stream that is always ready never waits.
            tokio::task::consume_budget().await;
        }
    }

    /// Maps an event to keys and queues the keys. Returns `false` on failure.
    fn map(&self, event: &T, cx: &SourceContext<Q>) -> bool {
        let mapped = cx.supervisor.call("event mapper", || {
            if !self.predicates.iter().all(|matches| matches(event)) {
                return Ok(Vec::new());
            }
            (self.mapper)(event, &cx.map)
        });
        match mapped {
            Some(Ok(keys)) => {
                cx.enqueue(keys, 0);
                true
            }
            Some(Err(error)) => {
                tracing::warn!(controller = cx.controller, %error, "an event cannot be mapped to keys");
                false
            }
            None => false,
        }
    }
}

impl<T: Send + Sync + 'static, Q: QueueKey> From<EventStream<T, Q>> for Source<Q> {
    fn from(events: EventStream<T, Q>) -> Self {
        Self::new(move |cx| events.run(cx))
    }
}

impl<T, Q: QueueKey> std::fmt::Debug for EventStream<T, Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventStream")
    }
}

/// Sends events to a controller. Cheap to clone. The source ends when the last sender is dropped.
pub struct EventSender<T> {
    sender: mpsc::Sender<T>,
}

impl<T> EventSender<T> {
    /// Sends an event. Waits while 1024 events have not been taken.
    ///
    /// # Errors
    /// The controller has ended.
    pub async fn send(&self, event: T) -> Result<()> {
        self.sender.send(event).await.map_err(|_| Error::stopped())
    }
}

impl<T> Clone for EventSender<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone() }
    }
}

impl<T> std::fmt::Debug for EventSender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventSender")
    }
}
