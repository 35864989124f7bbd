//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::Row;

/// The columns of prioritylevelconfigurations.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Type"),
        Column::text("NominalConcurrencyShares"),
        Column::text("Queues"),
        Column::text("HandSize"),
        Column::text("QueueLengthLimit"),
        AGE,
    ],
    priority_level,
);

fn priority_level(row: &Row<'_>) -> Vec<Value> {
    let limited =
        |path: &str| row.value(&format!("/spec/limited/{path}")).cloned().unwrap_or_else(|| "<none>".into());
    vec![
        row.name(),
        row.text("/spec/type"),
        limited("nominalConcurrencyShares"),
        limited("limitResponse/queuing/queues"),
        limited("limitResponse/queuing/handSize"),
        limited("limitResponse/queuing/queueLengthLimit"),
        row.age(),
    ]
}
