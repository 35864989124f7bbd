//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::Row;

/// The columns of storageclasses.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Provisioner"),
        Column::text("ReclaimPolicy"),
        Column::text("VolumeBindingMode"),
        Column::text("AllowVolumeExpansion"),
        AGE,
    ],
    storage_class,
);

fn storage_class(row: &Row<'_>) -> Vec<Value> {
    let is_default = ["", "beta."].iter().any(|beta| {
        row.str(&format!("/metadata/annotations/storageclass.{beta}kubernetes.io~1is-default-class"))
            == "true"
    });
    let mut name = row.str("/metadata/name").to_owned();
    if is_default {
        name += " (default)";
    }
    vec![
        name.into(),
        row.text("/provisioner"),
        row.text_or("/reclaimPolicy", "Delete"),
        row.text_or("/volumeBindingMode", "Immediate"),
        row.bool("/allowVolumeExpansion").into(),
        row.age(),
    ]
}
