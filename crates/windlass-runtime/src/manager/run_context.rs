//! The context of a runnable.

use std::{hash::Hash, sync::Arc};

use kube_client::Client;
use prometheus_client::metrics::counter::Counter;
use windlass_workqueue::WorkQueue;

use crate::{
    cache_declaration::CacheDeclaration,
    context::Caches,
    env::Env,
    error::Result,
    events::{Broadcaster, Recorder},
    informer::SharedInformerFactory,
    kind::Object,
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
}

impl RunContext {
    /// Makes the context of a runnable, and the caches that the runnable reads.
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
            Caches::new(Reader::Runnable(runnable.to_owned()), own.writes.clone(), Arc::new(reporter));
        for cache in reads {
            let informer = cache.informer(&own.informers, &own.namespaces)?;
            caches.declare(None, &informer)?;
        }
        Ok(Self {
            state: state.clone(),
            shutdown,
            recorder: own.recorder.named(runnable),
            caches: Arc::new(caches),
        })
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

    /// Returns the shutdown signal.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Returns the manager's client.
    pub fn client(&self) -> &Client {
        &self.state.own.client
    }

    /// Returns the recorder of events about objects. The component of the events is the name of the runnable, unless
    /// [`Recorder::named`] changes the component.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the manager's event broadcaster, to log events or to write them to another cluster, too.
    pub fn events(&self) -> &Broadcaster {
        &self.state.own.events
    }

    /// Returns the caches, which the controllers share.
    pub fn informers(&self) -> &SharedInformerFactory {
        &self.state.own.informers
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

    /// Shows the metrics of a work queue of your own beside those of the controllers, as `workqueue_*` with the queue's
    /// [name](WorkQueue::name), until the returned guard is dropped. A queue replaces another one of its name.
    pub fn show_queue<K>(&self, queue: &WorkQueue<K>) -> ShownQueue
    where
        K: Clone + Eq + Hash + Send + Sync + 'static,
    {
        let (name, shown) = (queue.name().to_owned(), queue.clone());
        self.state.queues.add(&name, move || shown.metrics());
        ShownQueue { name, state: self.state.clone() }
    }

    /// Returns the source of wall-clock time and randomness.
    pub fn env(&self) -> &Env {
        &self.state.env
    }
}

/// A guard for a queue whose metrics are [shown](RunContext::show_queue). Dropping it hides them.
#[must_use = "the metrics are shown until this is dropped"]
pub struct ShownQueue {
    name: String,
    state: Arc<SharedState>,
}

impl Drop for ShownQueue {
    fn drop(&mut self) {
        self.state.queues.remove(&self.name);
    }
}

impl std::fmt::Debug for ShownQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ShownQueue").field(&self.name).finish()
    }
}
