//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of poddisruptionbudgets.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Min Available"),
        Column::text("Max Unavailable"),
        Column::integer("Allowed Disruptions"),
        AGE,
    ],
    |row| {
        vec![
            row.name(),
            row.scalar_or("/spec/minAvailable", "N/A"),
            row.scalar_or("/spec/maxUnavailable", "N/A"),
            row.number("/status/disruptionsAllowed"),
            row.age(),
        ]
    },
);
