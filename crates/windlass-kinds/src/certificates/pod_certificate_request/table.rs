//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::Column;
use crate::table::row::{Row, text};

/// The columns of podcertificaterequests.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("PodName"),
        Column::text("ServiceAccountName"),
        Column::text("NodeName"),
        Column::text("SignerName"),
        Column::text("State"),
        Column::text("UnverifiedUserAnnotations"),
    ],
    request,
);

fn request(row: &Row<'_>) -> Vec<Value> {
    let mut kinds = row.list("/status/conditions").iter().map(|condition| text(condition, "type"));
    let state = kinds.rfind(|kind| ["Issued", "Denied", "Failed"].contains(kind)).unwrap_or("Pending");
    vec![
        row.name(),
        row.text("/spec/podName"),
        row.text("/spec/serviceAccountName"),
        row.text("/spec/nodeName"),
        row.text("/spec/signerName"),
        state.into(),
        row.labels("/spec/unverifiedUserAnnotations"),
    ]
}
