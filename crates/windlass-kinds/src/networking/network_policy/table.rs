//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of networkpolicies.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("Pod-Selector"), AGE], |row| {
    vec![row.name(), row.selector("/spec/podSelector", "<none>"), row.age()]
});
