//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of scales.
pub(super) static TABLE: Table = Table::new(
    &[Column::text("Name"), Column::integer("Desired"), Column::integer("Available"), AGE],
    |row| vec![row.name(), row.number("/spec/replicas"), row.number("/status/replicas"), row.age()],
);
