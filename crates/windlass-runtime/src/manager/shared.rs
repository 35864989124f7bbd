//! What everything that a manager runs has in common.

use std::sync::Arc;

use kube_client::Client;
use tokio_util::sync::CancellationToken;

use crate::{
    client,
    env::Env,
    error::Result,
    events::Recorder,
    informer::SharedInformerFactory,
    metrics::{Metrics, QueueMetrics},
    read_your_writes::WriteLog,
    supervisor::Supervisor,
};

pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) writes: WriteLog,
    pub(crate) informers: SharedInformerFactory,
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
        let (client, of_client) = client::adopt(client).await?;
        let queues = QueueMetrics::default();
        let supervisor = Supervisor::default();
        metrics.register(|registry| {
            of_client.register_metrics(registry);
            registry.register_collector(Box::new(queues.clone()));
            supervisor.register_metrics(registry);
        });
        Ok(Arc::new(Self {
            informers: SharedInformerFactory::supervised(client.clone(), env.random(), supervisor.clone()),
            recorder: Recorder::start(client.clone(), env.clone()),
            writes: of_client.writes.clone(),
            client,
            metrics,
            queues,
            env,
            supervisor,
            namespaces,
        }))
    }
}

/// The word to stop, as whoever must obey it sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(pub(crate) CancellationToken);

impl Shutdown {
    /// Completes when it is time to stop. What is under way may be finished; the manager bounds how long.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }

    /// Whether it is time to stop.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
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
