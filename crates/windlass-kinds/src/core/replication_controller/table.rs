//! The columns of `kubectl get`.

use crate::table::Table;
use crate::workload::table::{REPLICA_COLUMNS, replicas};

/// The columns of replicationcontrollers.
pub(super) static TABLE: Table =
    Table::new(REPLICA_COLUMNS, |row| replicas(row, row.labels("/spec/selector")));
