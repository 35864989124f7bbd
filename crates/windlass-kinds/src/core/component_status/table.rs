//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::Column;
use crate::table::row::{Row, condition, is_true, text};

/// The columns of componentstatuses.
pub(super) static TABLE: Table = Table::new(
    &[Column::name(), Column::text("Status"), Column::text("Message"), Column::text("Error")],
    component_status,
);

fn component_status(row: &Row<'_>) -> Vec<Value> {
    let conditions = row.list("/conditions");
    match condition(conditions, "Healthy") {
        None => vec![row.name(), "Unknown".into(), "".into(), "".into()],
        Some(found) => {
            let status = if is_true(conditions, "Healthy") { "Healthy" } else { "Unhealthy" };
            vec![row.name(), status.into(), text(found, "message").into(), text(found, "error").into()]
        }
    }
}
