//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, scalar};

/// The columns of resourcequotas.
pub(super) static TABLE: Table =
    Table::new(&[Column::name(), Column::text("Request"), Column::text("Limit"), AGE], quota);

fn quota(row: &Row<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in row.map("/status/hard").into_iter().flatten() {
        let used = row.map("/status/used").and_then(|used| used.get(resource)).map_or("0".to_owned(), scalar);
        let cell = format!("{resource}: {used}/{}", scalar(hard));
        if resource.starts_with("limits.") { limits.push(cell) } else { requests.push(cell) }
    }
    vec![row.name(), requests.join(", ").into(), limits.join(", ").into(), row.age()]
}
