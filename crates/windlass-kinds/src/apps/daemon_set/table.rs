//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::Row;
use crate::workload::table::CONTAINERS;

/// The columns of daemonsets.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::integer("Desired"),
        Column::integer("Current"),
        Column::integer("Ready"),
        Column::integer("Up-to-date"),
        Column::integer("Available"),
        Column::text("Node Selector"),
        AGE,
        Column::wide("Containers"),
        Column::wide("Images"),
        Column::wide("Selector"),
    ],
    daemon_set,
);

fn daemon_set(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    vec![
        row.name(),
        row.number("/status/desiredNumberScheduled"),
        row.number("/status/currentNumberScheduled"),
        row.number("/status/numberReady"),
        row.number("/status/updatedNumberScheduled"),
        row.number("/status/numberAvailable"),
        row.labels("/spec/template/spec/nodeSelector"),
        row.age(),
        names,
        images,
        row.selector("/spec/selector", "<none>"),
    ]
}
