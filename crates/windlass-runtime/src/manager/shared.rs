//! What everything that a manager runs has in common.

use std::sync::Arc;

use kube_client::Client;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TrackedFuture},
};

use crate::{
    client,
    env::Env,
    error::Result,
    events::{Broadcaster, Recorder},
    informer::SharedInformerFactory,
    metrics::{CacheMetrics, Metrics, QueueMetrics},
    read_your_writes::WriteLog,
    supervisor::Supervisor,
};

pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) writes: WriteLog,
    pub(crate) informers: SharedInformerFactory,
    pub(crate) events: Broadcaster,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    pub(crate) queues: QueueMetrics,
    pub(crate) env: Env,
    pub(crate) supervisor: Supervisor,
    /// The namespaces that caches are limited to; all, if empty.
    pub(crate) namespaces: Vec<String>,
}

impl Shared {
    pub(super) async fn new(
        client: Client,
        env: Env,
        metrics: Metrics,
        namespaces: Vec<String>,
    ) -> Result<Arc<Self>> {
        let (client, state) = client::adopt(client).await?;
        let queues = QueueMetrics::default();
        let supervisor = Supervisor::default();
        let events = Broadcaster::supervised(env.clone(), supervisor.clone());
        events.start_recording_to(client.clone());
        metrics.register(|registry| {
            state.register_metrics(registry);
            registry.register_collector(Box::new(queues.clone()));
            supervisor.register_metrics(registry);
            events.register_metrics(registry);
        });
        let informers = SharedInformerFactory::supervised(client.clone(), env.random(), supervisor.clone());
        metrics.register(|registry| registry.register_collector(Box::new(CacheMetrics(informers.clone()))));
        Ok(Arc::new(Self {
            informers,
            recorder: events.recorder("windlass"),
            events,
            writes: state.writes.clone(),
            client,
            metrics,
            queues,
            env,
            supervisor,
            namespaces,
        }))
    }
}

/// The receiving side of a shutdown signal. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown {
    token: CancellationToken,
    /// Tasks that the manager waits for beside the runnables that spawned them.
    tracker: TaskTracker,
}

impl Shutdown {
    pub(crate) fn new() -> Self {
        Self { token: CancellationToken::new(), tracker: TaskTracker::new() }
    }

    /// Waits until the shutdown is requested. Work in progress may be finished; the manager limits the time for that.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// Whether the shutdown is requested.
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(crate) fn request(&self) {
        self.token.cancel();
    }

    /// Makes the manager wait for a future that a runnable spawns. Dropping the runnable aborts such a task but does not
    /// wait for it.
    pub(crate) fn track<F: Future>(&self, future: F) -> TrackedFuture<F> {
        self.tracker.track_future(future)
    }

    /// Waits until all tracked futures have ended or were dropped.
    pub(crate) async fn tracked_ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// What a runnable may use.
#[derive(Clone)]
pub struct RunContext {
    pub(crate) shared: Arc<Shared>,
    pub(crate) shutdown: Shutdown,
}

impl RunContext {
    /// The word to stop.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// The manager's client.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Records events about objects.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// The caches, shared with the controllers.
    pub fn informers(&self) -> &SharedInformerFactory {
        &self.shared.informers
    }

    /// The metrics, to add one's own.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Clock and randomness.
    pub fn env(&self) -> &Env {
        &self.shared.env
    }
}
