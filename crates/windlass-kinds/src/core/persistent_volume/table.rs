//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, join, text};

/// The columns of persistentvolumes.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Capacity"),
        Column::text("Access Modes"),
        Column::text("Reclaim Policy"),
        Column::text("Status"),
        Column::text("Claim"),
        Column::text("StorageClass"),
        Column::text("VolumeAttributesClass"),
        Column::text("Reason"),
        AGE,
        Column::wide("VolumeMode"),
    ],
    volume,
);

pub(in crate::core) fn phase<'a>(row: &Row<'a>) -> &'a str {
    if row.is_deleted() { "Terminating" } else { row.str("/status/phase") }
}

/// Returns the class named by the old annotation, or by the field.
pub(in crate::core) fn class(row: &Row<'_>) -> Value {
    let annotated = row.str("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    if annotated.is_empty() { row.text("/spec/storageClassName") } else { annotated.into() }
}

pub(in crate::core) fn access_modes(modes: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    join(known.iter().filter(|(mode, _)| modes.iter().any(|found| found == mode)).map(|(_, short)| *short))
}

fn volume(row: &Row<'_>) -> Vec<Value> {
    let claim = row
        .value("/spec/claimRef")
        .map_or_else(String::new, |claim| format!("{}/{}", text(claim, "namespace"), text(claim, "name")));
    vec![
        row.name(),
        row.scalar_or("/spec/capacity/storage", "0"),
        access_modes(row.list("/spec/accessModes")).into(),
        row.text("/spec/persistentVolumeReclaimPolicy"),
        phase(row).into(),
        claim.into(),
        class(row),
        row.text_or("/spec/volumeAttributesClassName", "<unset>"),
        row.text("/status/reason"),
        row.age(),
        row.text_or("/spec/volumeMode", "<unset>"),
    ]
}
