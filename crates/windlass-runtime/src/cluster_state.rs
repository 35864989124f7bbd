//! The parts of an operator that belong to a cluster.

use std::sync::Arc;

use kube_client::Client;

use crate::{
    client::{self, ApiClient, ClientState},
    env::Env,
    error::Result,
    events::{Broadcaster, EventsApi, Recorder},
    informer::SharedInformerFactory,
    read_your_writes::WriteJournal,
    supervisor::Supervisor,
};

/// The state of a cluster: the client, caches, writes and events.
pub(crate) struct ClusterState {
    pub(crate) client: Client,
    /// The client of the runtime's own requests.
    pub(crate) api: ApiClient,
    pub(crate) journal: WriteJournal,
    pub(crate) informers: SharedInformerFactory,
    pub(crate) events: Broadcaster,
    pub(crate) recorder: Recorder,
    /// The namespaces that caches are limited to; none means all namespaces.
    pub(crate) namespaces: Vec<String>,
    state: Arc<ClientState>,
}

impl ClusterState {
    pub(crate) async fn own(
        client: Client,
        env: &Env,
        supervisor: &Supervisor,
        namespaces: Vec<String>,
        events_api: EventsApi,
    ) -> Result<Self> {
        let events = Broadcaster::supervised(env.clone(), supervisor.clone());
        Self::new(client, env, supervisor, namespaces, events, events_api).await
    }

    /// Returns a further cluster. The metrics are the metrics of `own`, with another host.
    pub(crate) async fn further(
        client: Client,
        env: &Env,
        supervisor: &Supervisor,
        namespaces: Vec<String>,
        own: &Self,
        events_api: EventsApi,
    ) -> Result<Self> {
        let further =
            Self::new(client, env, supervisor, namespaces, own.events.sibling(), events_api).await?;
        further.state.share_metrics(&own.state);
        Ok(further)
    }

    async fn new(
        client: Client,
        env: &Env,
        supervisor: &Supervisor,
        namespaces: Vec<String>,
        events: Broadcaster,
        events_api: EventsApi,
    ) -> Result<Self> {
        let (client, api, state) = client::adopt(client, env).await?;
        events.record_by(events_api, &api);
        Ok(Self {
            informers: SharedInformerFactory::supervised(api.clone(), env.random(), supervisor.clone()),
            recorder: events.recorder("windlass"),
            events,
            journal: state.journal.clone(),
            client,
            api,
            namespaces,
            state,
        })
    }

    /// Logs the warnings of the API server at debug level from now on.
    pub(crate) fn silence_warnings(&self) {
        self.state.warnings.silence();
    }

    pub(crate) fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        self.state.register_metrics(registry);
        self.events.register_metrics(registry);
    }
}
