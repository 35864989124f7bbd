//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::workload::table::{CONTAINERS, ready};

/// The columns of deployments.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Ready"),
        Column::text("Up-to-date"),
        Column::text("Available"),
        AGE,
        Column::wide("Containers"),
        Column::wide("Images"),
        Column::wide("Selector"),
    ],
    |row| {
        let [names, images] = row.containers(CONTAINERS);
        vec![
            row.name(),
            ready(row),
            row.number("/status/updatedReplicas"),
            row.number("/status/availableReplicas"),
            row.age(),
            names,
            images,
            row.selector("/spec/selector", ""),
        ]
    },
);
