//! Deletes what nobody owns any more.
//!
//! The collector watches the metadata of every resource that discovery offers, also those of CRDs that come and go, and
//! keeps the graph of owners and dependents. A change in the graph queues the uids it concerns; a worker then looks at the
//! object and its owners. That an owner is absent is only believed when a live read says so.

mod collector;
mod graph;
mod observer;
mod verdict;
mod watches;

use std::sync::Arc;

use windlass_runtime::Manager;

use self::collector::Collector;
use self::observer::Observer;
use self::watches::Watches;

/// How many objects are looked at side by side.
const WORKERS: usize = 8;

/// Adds the collector to a manager.
pub(crate) fn add_to(manager: Manager) -> Manager {
    let observer = Arc::new(Observer::default());
    let collector = Collector::controller(observer.clone()).concurrency(WORKERS).allow_hot_loops();
    observer.connect(collector.handle());
    let watches = Watches::controller(observer).allow_hot_loops();
    manager.controller(collector).controller(watches)
}
