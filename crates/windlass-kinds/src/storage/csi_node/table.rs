//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of csinodes.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::integer("Drivers"), AGE], |row| {
    vec![row.name(), row.list("/spec/drivers").len().into(), row.age()]
});
