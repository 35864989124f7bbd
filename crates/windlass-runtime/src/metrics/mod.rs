//! Metrics under the names of controller-runtime and client-go, and some of Windlass' own.

mod process;
mod prometheus_text;
mod queue;
mod reconcile;
mod rest_client;

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use windlass_webhook::certificates::CertificateMetrics;

pub(crate) use self::{
    queue::QueueMetrics,
    reconcile::{OneController, ReconcileMetrics},
    rest_client::RestClientMetrics,
};

/// The content type of OpenMetrics text.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The content type of Prometheus' text format.
pub(crate) const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of a manager. Cheap to clone.
///
/// Register your own metrics before the manager runs, or in a runnable through
/// [`RunContext::metrics`](crate::RunContext::metrics). `prometheus_client` is re-exported in the matching
/// version:
///
/// ```
/// use windlass_runtime::{Manager, prometheus_client::metrics::counter::Counter};
///
/// # async fn example(client: kube_client::Client) {
/// let backups = Counter::<u64>::default();
/// let manager = Manager::new(client);
/// manager.metrics().register(|registry| {
///     // The endpoint shows it as `backup_runs_total`.
///     registry.register("backup_runs", "Number of backups", backups.clone());
/// });
/// // Clone `backups` into the reconciler, which counts with:
/// backups.inc();
/// # drop(manager); }
/// ```
#[derive(Clone, Default)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    pub(crate) reconcile: ReconcileMetrics,
    pub(crate) leader: Family<NameLabel, Gauge>,
    pub(crate) leader_slow_path: Family<NameLabel, Counter>,
    /// The metrics of the certificates from files, after a server has registered the metrics.
    certificates: Arc<OnceLock<CertificateMetrics>>,
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
            registry.register(
                "leader_election_slowpath",
                "Total number of slow path exercised in renewing leader leases. \
                 'name' is the string used to identify the lease. Please make sure to group by name",
                metrics.leader_slow_path.clone(),
            );
            let build = Family::<BuildLabel, Gauge>::default();
            build.get_or_create(&BuildLabel { version: env!("CARGO_PKG_VERSION") }).set(1);
            registry.register(
                "windlass_build_info",
                "The version of Windlass that this program is built with; always 1",
                build,
            );
            process::register(registry);
        });
        metrics
    }

    /// Adds metrics to the registry.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock());
    }

    /// Returns whether both are clones of the metrics of one manager.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.registry, &other.registry)
    }

    /// Says that the metrics of certificates are registered.
    pub(crate) fn set_certificates(&self, certificates: &CertificateMetrics) {
        // The first metrics stay: a name can be registered once.
        let _ = self.certificates.set(certificates.clone());
    }

    /// Returns the metrics of certificates. Registers the metrics unless a server has registered the metrics.
    pub(crate) fn certificates(&self) -> CertificateMetrics {
        let register = || {
            let certificates = CertificateMetrics::default();
            self.register(|registry| certificates.register(registry));
            certificates
        };
        self.certificates.get_or_init(register).clone()
    }

    /// Renders all metrics as OpenMetrics text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = encode(&mut text, &self.registry.lock());
        text
    }

    /// Renders all metrics in Prometheus' text format, version 0.0.4.
    pub fn render_prometheus(&self) -> String {
        prometheus_text::from_open_metrics(&self.render())
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabel {
    version: &'static str,
}

/// Encodes a metric of a collector.
pub(crate) fn encode_one<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &M,
) -> std::fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}
