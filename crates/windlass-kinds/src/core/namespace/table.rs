//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of namespaces.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("Status"), AGE], |row| {
    vec![row.name(), row.text("/status/phase"), row.age()]
});
