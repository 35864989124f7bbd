//! The columns of `kubectl get`.

use serde_json::Value;

use crate::core::persistent_volume::table::{access_modes, class, phase};
use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::Row;

/// The columns of persistentvolumeclaims.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Status"),
        Column::text("Volume"),
        Column::text("Capacity"),
        Column::text("Access Modes"),
        Column::text("StorageClass"),
        Column::text("VolumeAttributesClass"),
        AGE,
        Column::wide("VolumeMode"),
    ],
    claim,
);

fn claim(row: &Row<'_>) -> Vec<Value> {
    let bound = !row.str("/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        (row.scalar_or("/status/capacity/storage", "0"), access_modes(row.list("/status/accessModes")))
    } else {
        ("".into(), String::new())
    };
    vec![
        row.name(),
        phase(row).into(),
        row.text("/spec/volumeName"),
        capacity,
        modes.into(),
        class(row),
        row.text_or("/spec/volumeAttributesClassName", "<unset>"),
        row.age(),
        row.text_or("/spec/volumeMode", "<unset>"),
    ]
}
