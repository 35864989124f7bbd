//! The metrics of controllers, with controller-runtime's names.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::resource_path::GroupResource;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabel {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StaleLabel {
    controller: String,
    group: String,
    resource: String,
}

/// The labels of controller-runtime's waits for writes. `operation` says who waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConsistencyLabel {
    operation: &'static str,
    result: &'static str,
}

/// The metrics of all controllers of a manager.
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
    barrier_waits: Family<ControllerLabel, Histogram, fn() -> Histogram>,
    barrier_timeouts: Family<ControllerLabel, Counter>,
    stale_syncs: Family<StaleLabel, Counter>,
    consistency_waits: Family<ConsistencyLabel, Histogram, fn() -> Histogram>,
    remembered_writes: Family<ControllerLabel, Gauge>,
    conflicts: Family<ControllerLabel, Counter>,
    hot_loops: Family<ControllerLabel, Counter>,
    own_writes_skipped: Family<ControllerLabel, Counter>,
    undecodable: Family<ControllerLabel, Counter>,
    unmapped_events: Family<ControllerLabel, Counter>,
}

/// Returns a histogram with controller-runtime's buckets.
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

/// Returns a histogram with the buckets of controller-runtime's waits for writes.
fn consistency_waits() -> Histogram {
    Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0])
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
            barrier_waits: Family::new_with_constructor(short_waits as fn() -> Histogram),
            barrier_timeouts: Family::default(),
            stale_syncs: Family::default(),
            consistency_waits: Family::new_with_constructor(consistency_waits as fn() -> Histogram),
            remembered_writes: Family::default(),
            conflicts: Family::default(),
            hot_loops: Family::default(),
            own_writes_skipped: Family::default(),
            undecodable: Family::default(),
            unmapped_events: Family::default(),
        }
    }
}

impl ReconcileMetrics {
    // The encoder adds `_total` to the names of counters.
    pub(super) fn register(&self, registry: &mut Registry) {
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
            self.barrier_waits.clone(),
        );
        registry.register(
            "windlass_read_your_writes_timeouts",
            "Reconciles that went on though their caches had not seen what the last reconcile of the key wrote",
            self.barrier_timeouts.clone(),
        );
        registry.register(
            "windlass_stale_sync_skips",
            "Total number of reconciles that were put off because a cache had not seen a write of the key",
            self.stale_syncs.clone(),
        );
        registry.register(
            "controller_runtime_client_consistency_wait_duration_seconds",
            "Length of time waiting for the cache to observe writes before serving reads",
            self.consistency_waits.clone(),
        );
        registry.register(
            "windlass_remembered_writes",
            "Writes and keys with writes that the controller remembers, counted every 10 s",
            self.remembered_writes.clone(),
        );
        registry.register(
            "windlass_reconcile_conflicts",
            "Reconciles that ended in a conflict (409) and were requeued with back-off",
            self.conflicts.clone(),
        );
        registry.register(
            "windlass_hot_loops",
            "Times that a key was slowed down because it was reconciled too often, each time with a write",
            self.hot_loops.clone(),
        );
        registry.register(
            "windlass_controller_own_writes_skipped",
            "Events of own writes that did not enqueue the key of the reconcile that wrote",
            self.own_writes_skipped.clone(),
        );
        registry.register(
            "windlass_undecodable_objects",
            "Versions of cached objects that did not decode into the type they were read as",
            self.undecodable.clone(),
        );
        registry.register(
            "windlass_unmapped_events",
            "Events of event streams that were given up, because their mapper failed again and again",
            self.unmapped_events.clone(),
        );
    }

    /// Returns the count of objects that a part of an operator could not decode.
    pub(crate) fn undecodable_of(&self, part: &str) -> Counter {
        self.undecodable.get_or_create_owned(&ControllerLabel { controller: part.to_owned() })
    }

    /// Returns the metrics of one controller.
    pub(crate) fn of(&self, controller: &str) -> OneController {
        let label = ControllerLabel { controller: controller.to_owned() };
        let result = |result| {
            self.total.get_or_create_owned(&ResultLabel { controller: controller.to_owned(), result })
        };
        let wait = |result| {
            let label = ConsistencyLabel { operation: "reconcile", result };
            self.consistency_waits.get_or_create_owned(&label)
        };
        OneController {
            success: result("success"),
            error: result("error"),
            requeue_after: result("requeue_after"),
            requeue: result("requeue"),
            errors: self.errors.get_or_create_owned(&label),
            terminal_errors: self.terminal_errors.get_or_create_owned(&label),
            panics: self.panics.get_or_create_owned(&label),
            timeouts: self.timeouts.get_or_create_owned(&label),
            time: self.time.get_or_create_owned(&label),
            max_concurrent: self.max_concurrent.get_or_create_owned(&label),
            active: self.active.get_or_create_owned(&label),
            barrier_waits: self.barrier_waits.get_or_create_owned(&label),
            barrier_timeouts: self.barrier_timeouts.get_or_create_owned(&label),
            stale_syncs: StaleSyncs { all: self.stale_syncs.clone(), controller: controller.to_owned() },
            consistency_waits: ConsistencyWaits { success: wait("success"), timeout: wait("timeout") },
            remembered_writes: self.remembered_writes.get_or_create_owned(&label),
            conflicts: self.conflicts.get_or_create_owned(&label),
            hot_loops: self.hot_loops.get_or_create_owned(&label),
            own_writes_skipped: self.own_writes_skipped.get_or_create_owned(&label),
            undecodable: self.undecodable.get_or_create_owned(&label),
            unmapped_events: self.unmapped_events.get_or_create_owned(&label),
        }
    }
}

/// The metrics of a controller.
pub(crate) struct OneController {
    pub(crate) success: Counter,
    pub(crate) error: Counter,
    pub(crate) requeue_after: Counter,
    pub(crate) requeue: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) time: Histogram,
    pub(crate) max_concurrent: Gauge,
    pub(crate) active: Gauge,
    pub(crate) barrier_waits: Histogram,
    pub(crate) barrier_timeouts: Counter,
    pub(crate) stale_syncs: StaleSyncs,
    pub(crate) consistency_waits: ConsistencyWaits,
    pub(crate) remembered_writes: Gauge,
    pub(crate) conflicts: Counter,
    pub(crate) hot_loops: Counter,
    pub(crate) own_writes_skipped: Counter,
    pub(crate) undecodable: Counter,
    pub(crate) unmapped_events: Counter,
}

/// Counts the reconciles of a controller that are put off, by the resource that a cache has not seen yet.
pub(crate) struct StaleSyncs {
    all: Family<StaleLabel, Counter>,
    controller: String,
}

impl StaleSyncs {
    /// Counts a reconcile that is put off because of a write to `unseen`.
    pub(crate) fn count(&self, unseen: &GroupResource) {
        let GroupResource { group, resource } = unseen.clone();
        self.all.get_or_create(&StaleLabel { controller: self.controller.clone(), group, resource }).inc();
    }
}

/// The waits for writes, by their end. The metric has no label for the controller, as in controller-runtime.
pub(crate) struct ConsistencyWaits {
    pub(crate) success: Histogram,
    pub(crate) timeout: Histogram,
}
