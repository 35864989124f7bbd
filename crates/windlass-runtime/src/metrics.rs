//! Metrics, under the names that controller-runtime and client-go give them, so that dashboards carry over.
//!
//! They are exposed as OpenMetrics text, which Prometheus reads as it reads its own format.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text::encode},
    metrics::{MetricType, counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use windlass_workqueue::{Histogram as QueueHistogram, Snapshot};

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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ControllerLabel {
    pub(crate) controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ResultLabel {
    pub(crate) controller: String,
    pub(crate) result: &'static str,
}

/// What controllers count, for all controllers of a manager.
#[derive(Clone)]
pub(crate) struct ReconcileMetrics {
    total: Family<ResultLabel, Counter>,
    errors: Family<ControllerLabel, Counter>,
    terminal_errors: Family<ControllerLabel, Counter>,
    panics: Family<ControllerLabel, Counter>,
    timeouts: Family<ControllerLabel, Counter>,
    time: Family<ControllerLabel, Histogram, fn() -> Histogram>,
    max_concurrent: Family<ControllerLabel, Gauge>,
    active: Family<ControllerLabel, Gauge>,
    gate_waits: Family<ControllerLabel, Histogram, fn() -> Histogram>,
    gate_timeouts: Family<ControllerLabel, Counter>,
}

/// controller-runtime's buckets.
fn reconcile_time() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
        1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0,
        40.0, 50.0, 60.0,
    ])
}

fn short_waits() -> Histogram {
    Histogram::new([0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0])
}

impl Default for ReconcileMetrics {
    fn default() -> Self {
        Self {
            total: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            time: Family::new_with_constructor(reconcile_time as fn() -> Histogram),
            max_concurrent: Family::default(),
            active: Family::default(),
            gate_waits: Family::new_with_constructor(short_waits as fn() -> Histogram),
            gate_timeouts: Family::default(),
        }
    }
}

impl ReconcileMetrics {
    // A counter's `_total` is put on by the encoder.
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "controller_runtime_reconcile",
            "Total number of reconciliations per controller",
            self.total.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Total number of reconciliation errors per controller",
            self.errors.clone(),
        );
        registry.register(
            "controller_runtime_terminal_reconcile_errors",
            "Total number of terminal reconciliation errors per controller",
            self.terminal_errors.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_panics",
            "Total number of reconciliation panics per controller",
            self.panics.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_timeouts",
            "Total number of reconciliation timeouts per controller",
            self.timeouts.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            self.time.clone(),
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller",
            self.max_concurrent.clone(),
        );
        registry.register(
            "controller_runtime_active_workers",
            "Number of currently used workers per controller",
            self.active.clone(),
        );
        registry.register(
            "windlass_read_your_writes_wait_seconds",
            "How long reconciles waited for their caches to see what the last reconcile of the key wrote",
            self.gate_waits.clone(),
        );
        registry.register(
            "windlass_read_your_writes_timeouts",
            "Reconciles that went on though their caches had not seen what the last reconcile of the key wrote",
            self.gate_timeouts.clone(),
        );
    }

    /// The metrics of one controller, looked up once.
    pub(crate) fn of(&self, controller: &str) -> OneController {
        let label = ControllerLabel { controller: controller.to_owned() };
        let result = |result| {
            self.total.get_or_create_owned(&ResultLabel { controller: controller.to_owned(), result })
        };
        OneController {
            success: result("success"),
            error: result("error"),
            requeue_after: result("requeue_after"),
            // `requeue` is part of the original's set; with Windlass nothing requeues at once.
            _requeue: result("requeue"),
            errors: self.errors.get_or_create_owned(&label),
            terminal_errors: self.terminal_errors.get_or_create_owned(&label),
            panics: self.panics.get_or_create_owned(&label),
            timeouts: self.timeouts.get_or_create_owned(&label),
            time: self.time.get_or_create_owned(&label),
            max_concurrent: self.max_concurrent.get_or_create_owned(&label),
            active: self.active.get_or_create_owned(&label),
            gate_waits: self.gate_waits.get_or_create_owned(&label),
            gate_timeouts: self.gate_timeouts.get_or_create_owned(&label),
        }
    }
}

/// The metrics of one controller.
pub(crate) struct OneController {
    pub(crate) success: Counter,
    pub(crate) error: Counter,
    pub(crate) requeue_after: Counter,
    _requeue: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) time: Histogram,
    pub(crate) max_concurrent: Gauge,
    pub(crate) active: Gauge,
    pub(crate) gate_waits: Histogram,
    pub(crate) gate_timeouts: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabel {
    code: String,
    method: String,
    host: String,
}

/// What a client counts.
#[derive(Clone, Default)]
pub(crate) struct RestClientMetrics {
    requests: Family<RequestLabel, Counter<u64, AtomicU64>>,
}

impl RestClientMetrics {
    pub(crate) fn count(&self, method: &str, code: &str, host: &str) {
        let label = RequestLabel { code: code.to_owned(), method: method.to_owned(), host: host.to_owned() };
        self.requests.get_or_create(&label).inc();
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            self.requests.clone(),
        );
    }
}

/// The metrics of all work queues, read when somebody asks for them.
#[derive(Clone, Default)]
pub(crate) struct QueueMetrics {
    queues: Arc<Mutex<BTreeMap<String, Snapshots>>>,
}

type Snapshots = Arc<dyn Fn() -> Snapshot + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabel {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DepthLabel {
    name: String,
    controller: String,
    priority: String,
}

/// Priorities that get a label of their own; controller-runtime's limit.
const PRIORITIES: usize = 25;

impl QueueMetrics {
    pub(crate) fn add(&self, controller: &str, snapshot: impl Fn() -> Snapshot + Send + Sync + 'static) {
        self.queues.lock().insert(controller.to_owned(), Arc::new(snapshot));
    }
}

impl std::fmt::Debug for QueueMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueueMetrics")
    }
}

impl Collector for QueueMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let queues: Vec<(QueueLabel, Snapshot)> = {
            let queues = self.queues.lock();
            let read = |(name, read): (&String, &Snapshots)| {
                (QueueLabel { name: name.clone(), controller: name.clone() }, read())
            };
            queues.iter().map(read).collect()
        };
        let depth = Family::<DepthLabel, Gauge>::default();
        let (adds, retries) =
            (Family::<QueueLabel, Counter>::default(), Family::<QueueLabel, Counter>::default());
        let unfinished = Family::<QueueLabel, Gauge<f64, AtomicU64>>::default();
        let longest = Family::<QueueLabel, Gauge<f64, AtomicU64>>::default();
        for (label, snapshot) in &queues {
            for (place, (priority, keys)) in snapshot.depth.iter().enumerate() {
                let priority = if place < PRIORITIES {
                    priority.to_string()
                } else {
                    "exceeded_cardinality_limit".to_owned()
                };
                let QueueLabel { name, controller } = label.clone();
                depth.get_or_create(&DepthLabel { name, controller, priority }).inc_by(*keys as i64);
            }
            adds.get_or_create(label).inc_by(snapshot.adds);
            retries.get_or_create(label).inc_by(snapshot.retries);
            unfinished.get_or_create(label).set(snapshot.unfinished_work.as_secs_f64());
            longest.get_or_create(label).set(snapshot.longest_running_processor.as_secs_f64());
        }
        encode_one(
            &mut encoder,
            "workqueue_depth",
            "Current depth of workqueue by workqueue and priority",
            &depth,
        )?;
        encode_one(&mut encoder, "workqueue_adds", "Total number of adds handled by workqueue", &adds)?;
        encode_one(
            &mut encoder,
            "workqueue_retries",
            "Total number of retries handled by workqueue",
            &retries,
        )?;
        encode_one(
            &mut encoder,
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has been done that is in progress and hasn't been observed by work_duration",
            &unfinished,
        )?;
        encode_one(
            &mut encoder,
            "workqueue_longest_running_processor_seconds",
            "How many seconds has the longest running processor for workqueue been running",
            &longest,
        )?;
        let queued = queues.iter().map(|(label, snapshot)| (label, &snapshot.queue_duration));
        encode_histograms(
            &mut encoder,
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            queued,
        )?;
        let worked = queues.iter().map(|(label, snapshot)| (label, &snapshot.work_duration));
        encode_histograms(
            &mut encoder,
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes",
            worked,
        )
    }
}

fn encode_one<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &M,
) -> std::fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn encode_histograms<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    queues: impl Iterator<Item = (&'a QueueLabel, &'a QueueHistogram)>,
) -> std::fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (label, histogram) in queues {
        // The queue counts up to each bound, the encoder wants what lies between two.
        let mut below = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::with_capacity(histogram.buckets.len() + 1);
        for (bound, up_to) in &histogram.buckets {
            buckets.push((*bound, up_to - below));
            below = *up_to;
        }
        buckets.push((f64::MAX, histogram.count - below));
        metric.encode_family(label)?.encode_histogram::<NameLabel>(
            histogram.sum,
            histogram.count,
            &buckets,
            None,
        )?;
    }
    Ok(())
}
