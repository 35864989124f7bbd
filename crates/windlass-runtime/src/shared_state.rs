//! The state that the controllers and the other parts of an operator share.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::future::join_all;
use kube_client::Client;

use crate::{
    cluster_state::ClusterState,
    env::Env,
    error::{Error, Result},
    events::EventsApi,
    informer::{CacheMetrics, SharedInformerFactory},
    leader_deadline::LeaderDeadline,
    metrics::{Metrics, QueueMetrics},
    observer::Observer,
    sharding::ShardGroup,
    supervisor::Supervisor,
};

/// A further cluster and the cluster's client.
pub(crate) struct ConnectedCluster {
    pub(crate) name: String,
    pub(crate) client: Client,
    /// The namespaces that caches are limited to; none means all namespaces.
    pub(crate) namespaces: Vec<String>,
}

/// The state that the controllers and the other parts of an operator share.
pub(crate) struct SharedState {
    /// The cluster of Leases, declared rights, and watches that name no other cluster.
    pub(crate) own: ClusterState,
    further: BTreeMap<String, ClusterState>,
    pub(crate) metrics: Metrics,
    pub(crate) queues: QueueMetrics,
    pub(crate) env: Env,
    pub(crate) supervisor: Supervisor,
    /// The right of leader-elected controllers to reconcile. Open if no leader is elected.
    pub(crate) leader: LeaderDeadline,
    /// The membership of this replica, if keys are split among replicas.
    pub(crate) sharding: OnceLock<ShardGroup>,
    /// Called after each reconcile.
    pub(crate) observer: Option<Observer>,
}

impl SharedState {
    pub(crate) async fn new(
        client: Client,
        env: Env,
        metrics: Metrics,
        namespaces: Vec<String>,
        clusters: Vec<ConnectedCluster>,
        events_api: EventsApi,
        observer: Option<Observer>,
    ) -> Result<Arc<Self>> {
        let (queues, supervisor) = (QueueMetrics::default(), Supervisor::default());
        let own = ClusterState::own(client, &env, &supervisor, namespaces, events_api).await?;
        let mut further = BTreeMap::new();
        let states = clusters.into_iter().map(async |ConnectedCluster { name, client, namespaces }| {
            let state = ClusterState::further(client, &env, &supervisor, namespaces, &own, events_api).await;
            (name, state)
        });
        // Together, because each cluster that is out of reach takes time.
        for (name, state) in join_all(states).await {
            let state = state.map_err(|e| e.while_doing(format_args!("connecting to cluster {name:?}")))?;
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
            leader: LeaderDeadline::open(),
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

    /// Returns the clusters: the manager's own cluster without a name, then the further clusters by name.
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

    /// Returns the kinds with an unfinished first list, with the reason if known; kinds of further clusters
    /// with the cluster's name.
    pub(crate) fn unsynced(&self) -> Vec<String> {
        self.of_all_caches(SharedInformerFactory::unsynced)
    }

    /// Returns the kinds with a filled cache and a watch that has been failing for `limit`, each with the last failure.
    pub(crate) fn stale(&self, limit: Duration) -> Vec<String> {
        self.of_all_caches(|informers| informers.stale(limit))
    }

    /// Returns descriptions of the caches of all clusters; caches of further clusters with the cluster's
    /// name.
    fn of_all_caches(&self, describe: impl Fn(&SharedInformerFactory) -> Vec<String>) -> Vec<String> {
        let of_cluster = |(cluster, state): (Option<&str>, &ClusterState)| {
            let suffix = cluster.map(|cluster| format!(" in cluster {cluster}")).unwrap_or_default();
            let kinds = describe(&state.informers).into_iter();
            kinds.map(|kind| kind + &suffix).collect::<Vec<_>>()
        };
        self.clusters().flat_map(of_cluster).collect()
    }
}
