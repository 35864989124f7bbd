//! The columns of `kubectl get`.

use serde_json::Value;

use super::{EFFECT, TIME};
use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::Row;

/// The columns of devicetaintrules.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Key"),
        Column::text("Value"),
        Column::text("Effect"),
        Column::text("TimeAdded"),
        AGE,
    ],
    rule,
);

fn rule(row: &Row<'_>) -> Vec<Value> {
    let time = if row.str(TIME).is_empty() { "".into() } else { row.since(TIME) };
    let [key, value] = ["/spec/taint/key", "/spec/taint/value"].map(|pointer| row.text(pointer));
    vec![row.name(), key, value, row.text(EFFECT), time, row.age()]
}
