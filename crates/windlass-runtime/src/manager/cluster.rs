//! The clusters of a manager: the manager's own cluster, and further clusters.

use kube_client::Client;

use super::{Manager, Target};
use crate::{
    client::ConfigSource,
    env::Env,
    error::{Error, Result},
    shared_state::ConnectedCluster,
};

/// A further cluster of a manager, for watches and writes.
///
/// Leases, events of the manager itself and declared rights stay with the manager's own cluster. A controller
/// watches a further cluster with [`Watch::in_cluster`](crate::Watch::in_cluster), and the reconciler reads
/// and writes there with [`Context::in_cluster`](crate::Context::in_cluster). While a cluster cannot be
/// reached, the controllers that watch the cluster wait for the first lists; all other controllers work.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::{
///     Action, Context, Controller, Manager, ObjectKey, Result, Watch, client::ConfigSource, kind, manager::Cluster,
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
///         Controller::of::<ConfigMap>(reconcile).watch(Watch::primary(kind::<ConfigMap>()).in_cluster("edge")),
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

    /// Connects to the cluster.
    pub(super) async fn connect(self, env: &Env) -> Result<ConnectedCluster> {
        let Self { name, target, namespaces } = self;
        check_name(&name)?;
        let client = Manager::connect(target, env).await;
        let client = client.map_err(|e| e.while_doing(format_args!("connecting to cluster {name:?}")))?;
        Ok(ConnectedCluster { name, client, namespaces })
    }
}

/// Refuses a name that would be ambiguous in a metric's label or an error message.
fn check_name(name: &str) -> Result<()> {
    if name.is_empty() { Err(Error::setup("a cluster of the manager has an empty name")) } else { Ok(()) }
}
