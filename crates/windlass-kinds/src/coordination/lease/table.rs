//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of leases.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("Holder"), AGE], |row| {
    vec![row.name(), row.text("/spec/holderIdentity"), row.age()]
});
