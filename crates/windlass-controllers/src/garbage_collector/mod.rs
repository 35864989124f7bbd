//! The garbage collector: deletes objects without owners.
//!
//! The collector watches the metadata of every resource in discovery, including resources of CRDs that come
//! and go, and keeps the graph of owners and dependents. A change in the graph enqueues the affected uids,
//! and a worker checks each object and the object's owners. An owner counts as absent only if a live read
//! confirms the absence.

mod collector;
mod decision;
mod graph;
mod graph_builder;
mod monitors;

use std::sync::Arc;

use windlass_runtime::Manager;

use self::collector::Collector;
use self::graph_builder::GraphBuilder;
use self::monitors::Monitors;

/// How many objects are checked concurrently.
const WORKERS: usize = 8;

/// Adds the garbage collector to a manager.
pub(crate) fn add_to(manager: Manager) -> Manager {
    let graph_builder = Arc::new(GraphBuilder::default());
    let collector =
        Collector::controller(graph_builder.clone()).max_concurrent_reconciles(WORKERS).allow_hot_loops();
    graph_builder.connect(collector.handle());
    let monitors = Monitors::controller(graph_builder).allow_hot_loops();
    manager.controller(collector).controller(monitors)
}
