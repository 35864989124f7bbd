//! The columns of `kubectl get`.

use crate::core::config_map::table::entries;
use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of secrets.
pub(super) static TABLE: Table =
    Table::new(&[Column::name(), Column::text("Type"), Column::text("Data"), AGE], |row| {
        vec![row.name(), row.text("/type"), entries(row, "/data").into(), row.age()]
    });
