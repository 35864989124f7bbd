//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{condition, text};

/// The columns of flowschemas.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("PriorityLevel"),
        Column::text("MatchingPrecedence"),
        Column::text("DistinguisherMethod"),
        AGE,
        Column::text("MissingPL"),
    ],
    |row| {
        let dangling = condition(row.list("/status/conditions"), "Dangling");
        vec![
            row.name(),
            row.text("/spec/priorityLevelConfiguration/name"),
            row.number("/spec/matchingPrecedence"),
            row.text_or("/spec/distinguisherMethod/type", "<none>"),
            row.age(),
            dangling.map_or("?", |condition| text(condition, "status")).into(),
        ]
    },
);
