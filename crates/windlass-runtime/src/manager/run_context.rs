//! The context of a runnable.

use std::sync::Arc;

use kube_client::Client;

use super::{ManagerState, Shutdown};
use crate::{
    env::Env,
    error::Result,
    events::{Broadcaster, Recorder},
    informer::SharedInformerFactory,
    metrics::Metrics,
};

/// The context of a runnable. Cheap to clone.
#[derive(Clone)]
pub struct RunContext {
    pub(crate) state: Arc<ManagerState>,
    pub(crate) shutdown: Shutdown,
}

impl RunContext {
    /// Returns the shutdown signal.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Returns the manager's client.
    pub fn client(&self) -> &Client {
        &self.state.own.client
    }

    /// Returns the recorder of events about objects.
    pub fn recorder(&self) -> &Recorder {
        &self.state.own.recorder
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

    /// Returns the source of wall-clock time and randomness.
    pub fn env(&self) -> &Env {
        &self.state.env
    }
}
