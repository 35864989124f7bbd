//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::Row;

/// The columns of configmaps.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("Data"), AGE], |row| {
    vec![row.name(), (entries(row, "/data") + entries(row, "/binaryData")).into(), row.age()]
});

pub(in crate::core) fn entries(row: &Row<'_>, pointer: &str) -> usize {
    row.map(pointer).map_or(0, serde_json::Map::len)
}
