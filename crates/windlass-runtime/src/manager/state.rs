//! The state that all parts of a manager share.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use kube_client::Client;

use super::cluster::{Cluster, ClusterState, check_name};
use crate::{
    controller::Observer,
    env::Env,
    error::{Error, Result},
    events::EventsApi,
    fence::Fence,
    informer::SharedInformerFactory,
    metrics::{CacheMetrics, Metrics, QueueMetrics},
    sharding::Gate,
    supervisor::Supervisor,
};

/// The state that all parts of a manager share.
pub(crate) struct ManagerState {
    /// The cluster of Leases, declared rights, and watches that name no other one.
    pub(crate) own: ClusterState,
    further: BTreeMap<String, ClusterState>,
    pub(crate) metrics: Metrics,
    pub(crate) queues: QueueMetrics,
    pub(crate) env: Env,
    pub(crate) supervisor: Supervisor,
    /// The right of leader-elected controllers to reconcile. Open if no leader is elected.
    pub(crate) leader: Fence,
    /// The membership of this replica, if keys are split among replicas.
    pub(crate) sharding: OnceLock<Gate>,
    /// Called after each reconcile.
    pub(crate) observer: Option<Observer>,
}

impl ManagerState {
    pub(super) async fn new(
        client: Client,
        env: Env,
        metrics: Metrics,
        namespaces: Vec<String>,
        clusters: Vec<Cluster>,
        events_api: EventsApi,
        observer: Option<Observer>,
    ) -> Result<Arc<Self>> {
        let (queues, supervisor) = (QueueMetrics::default(), Supervisor::default());
        let own = ClusterState::own(client, &env, &supervisor, namespaces, events_api).await?;
        let mut further = BTreeMap::new();
        for cluster in clusters {
            let name = cluster.name.clone();
            check_name(&name)?;
            let state = ClusterState::further(cluster, &own, &env, &supervisor, events_api).await?;
            if further.insert(name.clone(), state).is_some() {
                return Err(Error::setup(format!("the manager has two clusters called {name:?}")));
            }
        }
        let state = Self {
            own,
            further,
            metrics,
            queues,
            env,
            supervisor,
            leader: Fence::open(),
            sharding: OnceLock::new(),
            observer,
        };
        state.metrics.register(|registry| {
            state.own.register_metrics(registry);
            registry.register_collector(Box::new(state.queues.clone()));
            state.supervisor.register_metrics(registry);
            let caches =
                state.clusters().map(|(name, cluster)| (name.map(str::to_owned), cluster.informers.clone()));
            registry.register_collector(Box::new(CacheMetrics(caches.collect())));
        });
        Ok(Arc::new(state))
    }

    /// Returns the further clusters by name.
    pub(crate) fn further(&self) -> impl Iterator<Item = (&str, &ClusterState)> {
        self.further.iter().map(|(name, cluster)| (name.as_str(), cluster))
    }

    /// Returns the clusters: the manager's own, which has no name, and then the further ones by name.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = (Option<&str>, &ClusterState)> {
        std::iter::once((None, &self.own)).chain(self.further().map(|(name, cluster)| (Some(name), cluster)))
    }

    /// Returns the cluster of a name; the manager's own without a name.
    pub(crate) fn cluster(&self, name: Option<&str>) -> Result<&ClusterState> {
        let Some(name) = name else { return Ok(&self.own) };
        self.further.get(name).ok_or_else(|| {
            Error::setup(format!(
                "the manager has no cluster called {name:?}; add it with `Manager::cluster`"
            ))
        })
    }

    /// Returns the caches of all clusters.
    pub(crate) fn informers(&self) -> Vec<SharedInformerFactory> {
        self.clusters().map(|(_, cluster)| cluster.informers.clone()).collect()
    }

    /// Returns the kinds whose first list has not ended, with the reason if it is known; those of further clusters with its name.
    pub(crate) fn unsynced(&self) -> Vec<String> {
        self.of_all_caches(SharedInformerFactory::unsynced)
    }

    /// Returns the kinds with a filled cache and a watch that has been failing for `limit`, each with the last failure.
    pub(crate) fn stale(&self, limit: Duration) -> Vec<String> {
        self.of_all_caches(|informers| informers.stale(limit))
    }

    /// Returns descriptions of the caches of all clusters; those of further clusters with the name of the cluster.
    fn of_all_caches(&self, describe: impl Fn(&SharedInformerFactory) -> Vec<String>) -> Vec<String> {
        let of_cluster = |(cluster, state): (Option<&str>, &ClusterState)| {
            let suffix = cluster.map(|cluster| format!(" in cluster {cluster}")).unwrap_or_default();
            let kinds = describe(&state.informers).into_iter();
            kinds.map(|kind| kind + &suffix).collect::<Vec<_>>()
        };
        self.clusters().flat_map(of_cluster).collect()
    }
}
