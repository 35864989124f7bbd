//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of resourceslices.
pub(super) static TABLE: Table = Table::new(
    &[Column::name(), Column::text("Node"), Column::text("Driver"), Column::text("Pool"), AGE],
    |row| {
        vec![
            row.name(),
            row.text("/spec/nodeName"),
            row.text("/spec/driver"),
            row.text("/spec/pool/name"),
            row.age(),
        ]
    },
);
