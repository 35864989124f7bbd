//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, join, text};

/// The columns of csidrivers.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::boolean("AttachRequired"),
        Column::boolean("PodInfoOnMount"),
        Column::boolean("StorageCapacity"),
        Column::text("TokenRequests"),
        Column::boolean("RequiresRepublish"),
        Column::text("Modes"),
        AGE,
    ],
    csi_driver,
);

fn csi_driver(row: &Row<'_>) -> Vec<Value> {
    let modes = join(row.list("/spec/volumeLifecycleModes").iter().filter_map(Value::as_str));
    let tokens = row.value("/spec/tokenRequests").map_or_else(
        || "<unset>".to_owned(),
        |_| join(row.list("/spec/tokenRequests").iter().map(|token| text(token, "audience"))),
    );
    let attach = row.value("/spec/attachRequired").and_then(Value::as_bool).unwrap_or(true);
    vec![
        row.name(),
        attach.into(),
        row.bool("/spec/podInfoOnMount").into(),
        row.bool("/spec/storageCapacity").into(),
        tokens.into(),
        row.bool("/spec/requiresRepublish").into(),
        if modes.is_empty() { "<none>".into() } else { modes.into() },
        row.age(),
    ]
}
