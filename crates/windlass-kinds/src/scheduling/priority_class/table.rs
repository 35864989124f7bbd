//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of priorityclasses.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::integer("Value"),
        Column::boolean("Global-Default"),
        AGE,
        Column::text("PreemptionPolicy"),
    ],
    |row| {
        vec![
            row.name(),
            row.number("/value"),
            row.bool("/globalDefault").into(),
            row.age(),
            row.text("/preemptionPolicy"),
        ]
    },
);
