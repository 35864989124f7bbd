//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of runtimeclasses.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("Handler"), AGE], |row| {
    vec![row.name(), row.text("/handler"), row.age()]
});
