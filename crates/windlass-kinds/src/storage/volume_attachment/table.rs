//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};

/// The columns of volumeattachments.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Attacher").named(),
        Column::text("PV"),
        Column::text("Node"),
        Column::boolean("Attached"),
        AGE,
    ],
    |row| {
        vec![
            row.name(),
            row.text("/spec/attacher"),
            row.text("/spec/source/persistentVolumeName"),
            row.text("/spec/nodeName"),
            row.bool("/status/attached").into(),
            row.age(),
        ]
    },
);
