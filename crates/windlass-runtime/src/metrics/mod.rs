//! Metrics, under the names that controller-runtime and client-go give them, so that dashboards carry over.
//!
//! They are exposed as OpenMetrics text, which Prometheus reads as it reads its own format.

mod queue;
mod reconcile;
mod rest_client;

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

pub(crate) use self::{
    queue::QueueMetrics,
    reconcile::{OneController, ReconcileMetrics},
    rest_client::RestClientMetrics,
};

/// What Prometheus is told the text is.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The registry of one manager. Own metrics are added with [`Metrics::register`].
#[derive(Clone, Default)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    pub(crate) reconcile: ReconcileMetrics,
    pub(crate) leader: Family<NameLabel, Gauge>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self::default();
        metrics.register(|registry| {
            metrics.reconcile.register(registry);
            registry.register(
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. \
                 'name' is the string used to identify the lease. Please make sure to group by name",
                metrics.leader.clone(),
            );
        });
        metrics
    }

    /// Adds metrics of one's own.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock());
    }

    /// All of them as OpenMetrics text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = encode(&mut text, &self.registry.lock());
        text
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct NameLabel {
    pub(crate) name: String,
}
