//! The clusters of a manager: its own, and further ones.

use std::sync::Arc;

use kube_client::Client;

use super::Target;
use crate::{
    client::{self, ClientState, ConfigSource},
    env::Env,
    error::{Error, Result},
    events::{Broadcaster, EventsApi, Recorder},
    informer::SharedInformerFactory,
    read_your_writes::WriteLog,
    supervisor::Supervisor,
};

/// A cluster that a manager watches and writes to besides its own.
///
/// Leases, events of the manager itself and declared rights stay with the manager's own cluster. A controller watches a further cluster
/// with [`Watch::in_cluster`](crate::Watch::in_cluster), and its reconciler reads and writes there with
/// [`Context::in_cluster`](crate::Context::in_cluster). While a cluster cannot be reached, the controllers that watch it wait for their
/// first lists; the others work.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::{
///     Action, Context, Controller, Manager, ObjectKey, Result, Watch, client::ConfigSource, manager::Cluster,
/// };
///
/// // Copies ConfigMaps to the cluster `edge`, and repairs the copies.
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     let edge = cx.in_cluster("edge")?;
///     if let (Some(original), None) = (cx.get(&key)?, edge.get(&key)?) {
///         let copy = ConfigMap { data: original.data.clone(), ..key_of(&key) };
///         edge.create(copy).await?;
///     }
///     Ok(Action::done())
/// }
/// # fn key_of(_: &ObjectKey) -> ConfigMap { ConfigMap::default() }
///
/// let manager = Manager::from_config(ConfigSource::default())
///     .cluster(Cluster::from_config("edge", ConfigSource { context: Some("edge".to_owned()), ..ConfigSource::default() }))
///     .controller(
///         Controller::of::<ConfigMap>(reconcile).watch(Watch::primary::<ConfigMap>().in_cluster("edge")),
///     );
/// # drop(manager);
/// ```
pub struct Cluster {
    pub(super) name: String,
    target: Target,
    pub(super) namespaces: Vec<String>,
}

impl Cluster {
    /// Names a cluster that `client` talks to.
    pub fn new(name: impl Into<String>, client: Client) -> Self {
        Self::to(name.into(), Target::Client(client))
    }

    /// Names a cluster that `source` describes. The configuration is loaded when the manager runs.
    pub fn from_config(name: impl Into<String>, source: ConfigSource) -> Self {
        Self::to(name.into(), Target::Config(source))
    }

    fn to(name: String, target: Target) -> Self {
        Self { name, target, namespaces: Vec::new() }
    }

    /// Limits the caches of namespaced kinds of this cluster to these namespaces. Default: all namespaces.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }
}

/// A cluster of a running manager.
pub(crate) struct ClusterState {
    pub(crate) client: Client,
    pub(crate) writes: WriteLog,
    pub(crate) informers: SharedInformerFactory,
    pub(crate) events: Broadcaster,
    pub(crate) recorder: Recorder,
    /// The namespaces that caches are limited to; none means all namespaces.
    pub(crate) namespaces: Vec<String>,
    state: Arc<ClientState>,
}

impl ClusterState {
    pub(super) async fn own(
        client: Client,
        env: &Env,
        supervisor: &Supervisor,
        namespaces: Vec<String>,
        events_api: EventsApi,
    ) -> Result<Self> {
        let events = Broadcaster::supervised(env.clone(), supervisor.clone());
        Self::new(client, env, supervisor, namespaces, events, events_api).await
    }

    /// Connects to a further cluster. Its metrics are those of `own`, with another host.
    pub(super) async fn further(
        cluster: Cluster,
        own: &Self,
        env: &Env,
        supervisor: &Supervisor,
        events_api: EventsApi,
    ) -> Result<Self> {
        let Cluster { name, target, namespaces } = cluster;
        let connected = async {
            let client = super::Manager::connect(target, env).await?;
            Self::new(client, env, supervisor, namespaces, own.events.sibling(), events_api).await
        };
        let further =
            connected.await.map_err(|e| e.while_doing(format_args!("connecting to cluster {name:?}")))?;
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
        let (client, state) = client::adopt(client, env).await?;
        events.start_recording_by(events_api, client.clone());
        Ok(Self {
            informers: SharedInformerFactory::supervised(client.clone(), env.random(), supervisor.clone()),
            recorder: events.recorder("windlass"),
            events,
            writes: state.writes.clone(),
            client,
            namespaces,
            state,
        })
    }

    pub(super) fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        self.state.register_metrics(registry);
        self.events.register_metrics(registry);
    }
}

/// Refuses a name that a metric's label or an error message could not tell from another.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() { Err(Error::setup("a cluster of the manager has an empty name")) } else { Ok(()) }
}
