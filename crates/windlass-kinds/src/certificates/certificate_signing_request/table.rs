//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::age::human_duration;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, condition};

/// The columns of certificatesigningrequests.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        AGE,
        Column::text("SignerName"),
        Column::text("Requestor"),
        Column::text("RequestedDuration"),
        Column::text("Condition"),
    ],
    signing_request,
);

fn signing_request(row: &Row<'_>) -> Vec<Value> {
    let conditions = row.list("/status/conditions");
    let has = |kind: &str| condition(conditions, kind).is_some();
    let mut state = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        state += ",Failed";
    }
    if !row.str("/status/certificate").is_empty() {
        state += ",Issued";
    }
    let duration = row.value("/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        row.name(),
        row.age(),
        row.text_or("/spec/signerName", "<none>"),
        row.text("/spec/username"),
        duration.map_or_else(|| "<none>".to_owned(), human_duration).into(),
        state.into(),
    ]
}
