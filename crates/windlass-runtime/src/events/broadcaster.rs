//! Hands recorded events to sinks.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube_client::Client;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{
    EventsApi, RecordedEvent, Recorder,
    core_sink::CoreSink,
    dropped::{DropCause, DroppedEvents},
    series_sink::SeriesSink,
    writer::EventWriter,
};
use crate::{
    client::ApiClient,
    env::{Env, host_name},
    supervisor::Supervisor,
};

/// The number of events that wait for a sink at most; client-go's figure.
const QUEUE: usize = 1000;

/// Hands the events of the recorders to sinks. Cheap to clone.
///
/// A broadcaster without sinks discards events.
#[derive(Clone)]
pub struct Broadcaster {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    supervisor: Supervisor,
    sinks: Mutex<Sinks>,
    dropped: DroppedEvents,
    /// True if the last event was dropped: only the first dropped event in a row is logged as a warning.
    dropping: AtomicBool,
}

/// A callback for each event.
type Watcher = Arc<dyn Fn(&RecordedEvent) + Send + Sync>;

#[derive(Default)]
struct Sinks {
    shut_down: bool,
    log: bool,
    watchers: Vec<Watcher>,
    queues: Vec<mpsc::Sender<RecordedEvent>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Default for Broadcaster {
    fn default() -> Self {
        Self::new()
    }
}

impl Broadcaster {
    /// Creates a broadcaster without sinks.
    pub fn new() -> Self {
        Self::supervised(Env::system(), Supervisor::default())
    }

    pub(crate) fn supervised(env: Env, supervisor: Supervisor) -> Self {
        Self::counting(env, supervisor, DroppedEvents::default())
    }

    /// Creates a broadcaster without sinks that counts dropped events together with this broadcaster.
    pub(crate) fn sibling(&self) -> Self {
        Self::counting(self.inner.env.clone(), self.inner.supervisor.clone(), self.inner.dropped.clone())
    }

    fn counting(env: Env, supervisor: Supervisor, dropped: DroppedEvents) -> Self {
        let inner =
            Inner { env, supervisor, sinks: Mutex::default(), dropped, dropping: AtomicBool::new(false) };
        Self { inner: Arc::new(inner) }
    }

    /// Logs each event at level info.
    pub fn start_logging(&self) {
        self.inner.sinks.lock().log = true;
    }

    /// Calls a function with each event, before correlation. The function must be quick.
    pub(crate) fn start_watching(&self, watcher: impl Fn(&RecordedEvent) + Send + Sync + 'static) {
        self.inner.sinks.lock().watchers.push(Arc::new(watcher));
    }

    /// Writes events to the API server that `client` talks to, by core/v1, in a background task.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start_recording_to(&self, client: Client) {
        self.start_recording_by(EventsApi::CoreV1, client);
    }

    /// Works like [`start_recording_to`](Self::start_recording_to), by the API that is given.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start_recording_by(&self, api: EventsApi, client: Client) {
        self.record_by(api, &client.into());
    }

    pub(crate) fn record_by(&self, api: EventsApi, client: &ApiClient) {
        let client = client.clone();
        let (queue, events) = mpsc::channel(QUEUE);
        let mut sinks = self.inner.sinks.lock();
        if sinks.shut_down {
            return;
        }
        // The queue outlives a panic; the event of the panic is lost, and so is the memory of earlier events.
        let events = Arc::new(tokio::sync::Mutex::new(events));
        let (env, dropped) = (self.inner.env.clone(), self.inner.dropped.clone());
        let task = self.inner.supervisor.spawn("event sink", move |recovery| {
            let (events, client, env, dropped) =
                (events.clone(), client.clone(), env.clone(), dropped.clone());
            async move {
                let mut events = events.lock().await;
                recovery.complete();
                match api {
                    EventsApi::CoreV1 => {
                        let writer = EventWriter::new(client, CoreSink::API, env, dropped);
                        CoreSink::new(writer).run(&mut events).await;
                    }
                    EventsApi::EventsV1 => {
                        let writer = EventWriter::new(client, SeriesSink::API, env, dropped);
                        SeriesSink::new(writer, host_name()).run(&mut events).await;
                    }
                }
            }
        });
        sinks.queues.push(queue);
        sinks.tasks.push(task);
    }

    /// Returns a recorder that reports as `component`.
    pub fn recorder(&self, component: impl Into<Arc<str>>) -> Recorder {
        Recorder::new(component.into(), self.clone())
    }

    /// Stops accepting events and waits until the sinks have written the queued events, at most for `limit`.
    pub async fn shutdown(&self, limit: Duration) {
        let deadline = Instant::now().checked_add(limit);
        let tasks = {
            let mut sinks = self.inner.sinks.lock();
            sinks.shut_down = true;
            // A sink ends when the queue is closed and empty.
            sinks.queues.clear();
            std::mem::take(&mut sinks.tasks)
        };
        for mut task in tasks {
            let Some(deadline) = deadline else {
                let _ = task.await;
                continue;
            };
            if timeout_at(deadline, &mut task).await.is_err() {
                tracing::warn!(?limit, "some events were not written before the shutdown");
                task.abort();
            }
        }
    }

    pub(super) fn broadcast(&self, event: RecordedEvent) {
        // Release the lock from here on: a layer of the log may record events.
        let (log, watchers, queues) = {
            let sinks = self.inner.sinks.lock();
            if sinks.shut_down {
                return;
            }
            (sinks.log, sinks.watchers.clone(), sinks.queues.clone())
        };
        if log {
            let object = &event.regarding;
            tracing::info!(
                component = &*event.component,
                kind = object.kind,
                namespace = object.namespace,
                name = object.name,
                r#type = %event.kind,
                reason = event.reason,
                action = event.action,
                note = event.note,
                "event"
            );
        }
        watchers.iter().for_each(|watcher| watcher(&event));
        for queue in &queues {
            match queue.try_send(event.clone()) {
                Ok(()) => self.inner.dropping.store(false, Ordering::Relaxed),
                Err(TrySendError::Full(event)) => {
                    self.inner.dropped.count(DropCause::QueueFull);
                    if !self.inner.dropping.swap(true, Ordering::Relaxed) {
                        tracing::warn!(
                            reason = event.reason,
                            "events are dropped: {QUEUE} wait to be written"
                        );
                    }
                }
                // The sink's task was cancelled together with the runtime.
                Err(TrySendError::Closed(_)) => {}
            }
        }
    }

    #[cfg(test)]
    pub(super) fn dropped(&self, cause: DropCause) -> u64 {
        self.inner.dropped.of(cause)
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        self.inner.dropped.register(registry);
    }
}

impl fmt::Debug for Broadcaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcaster").finish_non_exhaustive()
    }
}
