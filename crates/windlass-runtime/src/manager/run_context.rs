//! The context of a runnable.

use std::{hash::Hash, sync::Arc};

use futures::future::try_join_all;
use kube_client::Client;
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;
use windlass_workqueue::WorkQueue;

use crate::{
    api_reader::ApiReader,
    cache_declaration::CacheDeclaration,
    context::Caches,
    env::Env,
    error::Result,
    events::{Broadcaster, Recorder},
    informer::SharedInformerFactory,
    kind::Object,
    kind_ref::IntoKind,
    lister::Lister,
    metrics::Metrics,
    reader::Reader,
    shared_state::SharedState,
    shutdown::Shutdown,
    undecodable::UndecodableReporter,
};

/// The context of a runnable. Cheap to clone.
#[derive(Clone)]
pub struct RunContext {
    pub(crate) state: Arc<SharedState>,
    pub(crate) shutdown: Shutdown,
    /// Reports as the runnable.
    pub(crate) recorder: Recorder,
    /// The caches that the runnable declares.
    pub(crate) caches: Arc<Caches>,
    /// Shares the watches of the manager. A shutdown of this factory ends only the informers of the runnable.
    informers: SharedInformerFactory,
}

impl RunContext {
    /// Makes the context of a runnable, and the caches that the runnable reads, except for the caches that
    /// [lack a scope](CacheDeclaration::lacks_scope).
    pub(super) fn new(
        runnable: &str,
        reads: &[CacheDeclaration],
        state: &Arc<SharedState>,
        shutdown: Shutdown,
    ) -> Result<Self> {
        let own = &state.own;
        let undecodable = match reads {
            [] => Counter::default(),
            _ => state.metrics.reconcile.undecodable_of(runnable),
        };
        let reporter = UndecodableReporter::new(own.recorder.clone(), undecodable);
        let caches =
            Caches::new(Reader::Runnable(runnable.to_owned()), own.journal.clone(), Arc::new(reporter));
        let cx = Self {
            state: state.clone(),
            shutdown,
            recorder: own.recorder.named(runnable),
            caches: Arc::new(caches),
            informers: SharedInformerFactory::sharing(&own.informers)
                .default_namespaces(&own.namespaces)
                .build(),
        };
        for cache in reads {
            if cache.lacks_scope(&own.namespaces) {
                cx.caches.expect(&cache.kind.resource);
            } else {
                cx.declare(cache)?;
            }
        }
        Ok(cx)
    }

    fn declare(&self, cache: &CacheDeclaration) -> Result<()> {
        let own = &self.state.own;
        let informer = cache.informer(&own.informers, &own.namespaces)?;
        self.caches.declare(cache.name.as_deref(), &informer)
    }

    /// Makes caches of kinds that lack a scope, each as soon as the server serves the kind.
    pub(super) async fn declare_served(self, reads: Vec<CacheDeclaration>) -> Result<()> {
        let declared = reads.into_iter().map(async |read| {
            let known = read.with_scope(&self.state.own.api).await?;
            self.declare(&known)
        });
        try_join_all(declared).await.map(drop)
    }

    /// Works like [`new`](Self::new). Asks the server first about the kinds that [lack a scope](CacheDeclaration::lacks_scope).
    pub(super) async fn discovering(
        runnable: &str,
        reads: Vec<CacheDeclaration>,
        state: &Arc<SharedState>,
        shutdown: Shutdown,
    ) -> Result<Self> {
        let mut known = Vec::new();
        for read in reads {
            let lacks_scope = read.lacks_scope(&state.own.namespaces);
            known.push(if lacks_scope { read.with_scope(&state.own.api).await? } else { read });
        }
        Self::new(runnable, &known, state, shutdown)
    }

    /// Returns a lister of a kind. The lister sees the writes of the manager's client at once.
    ///
    /// By default a runnable starts with filled caches; see [`Runnable::without_caches`](crate::Runnable::without_caches).
    ///
    /// # Errors
    /// The runnable does not declare the kind with [`Runnable::reads`](crate::Runnable::reads).
    pub fn lister<K: Object>(&self) -> Result<Lister<K>> {
        self.caches.lister::<K>()
    }

    /// Works like [`lister`](Self::lister), for any [kind](crate::KindRef).
    ///
    /// # Errors
    /// The runnable does not declare the kind with [`Runnable::reads_of`](crate::Runnable::reads_of).
    pub fn lister_of<I>(&self, kind: I) -> Result<Lister<I::Object>>
    where
        I: IntoKind<Object: DeserializeOwned + Send + Sync + 'static>,
    {
        self.caches.lister_of(&kind.into_kind())
    }

    /// Returns the shutdown signal.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Returns the manager's client.
    pub fn client(&self) -> &Client {
        &self.state.own.client
    }

    /// Returns a reader of the API server, for reads that no cache answers.
    pub fn api_reader(&self) -> ApiReader {
        ApiReader::new(self.client().clone())
    }

    /// Returns the recorder of events about objects. The component of the events is the name of the runnable, unless
    /// [`Recorder::named`] changes the component.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the manager's event broadcaster, to log events or to write events to another cluster, too.
    pub fn events(&self) -> &Broadcaster {
        &self.state.own.events
    }

    /// Returns an informer factory that shares the watches of the manager. [`Manager::namespaces`](crate::Manager::namespaces) limits the
    /// informers of namespaced kinds, unless the options of an informer name namespaces. The informers and event handlers that are added
    /// with the factory end with the runnable.
    pub fn informers(&self) -> &SharedInformerFactory {
        &self.informers
    }

    /// Returns the client of a further [`Cluster`](super::Cluster).
    ///
    /// # Errors
    /// The manager has no cluster of this name.
    pub fn client_of(&self, cluster: &str) -> Result<&Client> {
        self.state.cluster(Some(cluster)).map(|cluster| &cluster.client)
    }

    /// Returns the metrics, where metrics of your own can be registered.
    pub fn metrics(&self) -> &Metrics {
        &self.state.metrics
    }

    /// Adds the metrics of a work queue of your own to the metrics of the controllers' queues, as `workqueue_*` with the queue's
    /// [name](WorkQueue::name), until the returned guard is dropped. A queue replaces another queue of the same name.
    pub fn register_queue_metrics<K>(&self, queue: &WorkQueue<K>) -> QueueMetricsGuard
    where
        K: Clone + Eq + Hash + Send + Sync + 'static,
    {
        let (name, queue) = (queue.name().to_owned(), queue.clone());
        self.state.queues.add(&name, move || queue.metrics());
        QueueMetricsGuard { name, state: self.state.clone() }
    }

    /// Returns the source of wall-clock time and randomness.
    pub fn env(&self) -> &Env {
        &self.state.env
    }
}

/// A guard of [registered](RunContext::register_queue_metrics) metrics of a queue. Dropping the guard removes the metrics.
#[must_use = "dropping the guard removes the metrics"]
pub struct QueueMetricsGuard {
    name: String,
    state: Arc<SharedState>,
}

impl Drop for QueueMetricsGuard {
    fn drop(&mut self) {
        self.state.queues.remove(&self.name);
    }
}

impl std::fmt::Debug for QueueMetricsGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("QueueMetricsGuard").field(&self.name).finish()
    }
}
