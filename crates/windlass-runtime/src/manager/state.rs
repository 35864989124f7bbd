//! The state that all parts of a manager share.

use std::sync::{Arc, OnceLock};

use kube_client::Client;

use crate::{
    client,
    env::Env,
    error::Result,
    events::{Broadcaster, EventsApi, Recorder},
    fence::Fence,
    informer::SharedInformerFactory,
    metrics::{CacheMetrics, Metrics, QueueMetrics},
    read_your_writes::WriteLog,
    sharding::Gate,
    supervisor::Supervisor,
};

/// The state that all parts of a manager share.
pub(crate) struct ManagerState {
    pub(crate) client: Client,
    pub(crate) writes: WriteLog,
    pub(crate) informers: SharedInformerFactory,
    pub(crate) events: Broadcaster,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    pub(crate) queues: QueueMetrics,
    pub(crate) env: Env,
    pub(crate) supervisor: Supervisor,
    /// The right of leader-elected controllers to reconcile. Open if no leader is elected.
    pub(crate) leader: Fence,
    /// The membership of this replica, if keys are split among replicas.
    pub(crate) sharding: OnceLock<Gate>,
    /// The namespaces that caches are limited to; none means all namespaces.
    pub(crate) namespaces: Vec<String>,
}

impl ManagerState {
    pub(super) async fn new(
        client: Client,
        env: Env,
        metrics: Metrics,
        namespaces: Vec<String>,
        events_api: EventsApi,
    ) -> Result<Arc<Self>> {
        let (client, client_state) = client::adopt(client, &env).await?;
        let queues = QueueMetrics::default();
        let supervisor = Supervisor::default();
        let events = Broadcaster::supervised(env.clone(), supervisor.clone());
        events.start_recording_by(events_api, client.clone());
        metrics.register(|registry| {
            client_state.register_metrics(registry);
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
            writes: client_state.writes.clone(),
            client,
            metrics,
            queues,
            env,
            supervisor,
            leader: Fence::open(),
            sharding: OnceLock::new(),
            namespaces,
        }))
    }
}
