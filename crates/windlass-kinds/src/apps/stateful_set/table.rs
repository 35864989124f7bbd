//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::workload::table::{CONTAINERS, ready};

/// The columns of statefulsets.
pub(super) static TABLE: Table = Table::new(
    &[Column::name(), Column::text("Ready"), AGE, Column::wide("Containers"), Column::wide("Images")],
    |row| {
        let [names, images] = row.containers(CONTAINERS);
        vec![row.name(), ready(row), row.age(), names, images]
    },
);
