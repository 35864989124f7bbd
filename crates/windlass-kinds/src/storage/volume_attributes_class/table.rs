//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of volumeattributesclasses.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("DriverName"), AGE], |row| {
    vec![row.name(), row.text("/driverName"), row.age()]
});
