//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::Column;
use crate::table::row::{Row, text};

/// The columns of storageversionmigrations.
pub(super) static TABLE: Table =
    Table::new(&[Column::text("Name"), Column::text("Resource"), Column::text("Status")], migration);

fn migration(row: &Row<'_>) -> Vec<Value> {
    let (group, resource) = (row.str("/spec/resource/group"), row.str("/spec/resource/resource"));
    let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let conditions = row.list("/status/conditions").iter();
    let mut kinds =
        conditions.filter(|condition| text(condition, "status") == "True").map(|found| text(found, "type"));
    let status = kinds.rfind(|kind| ["Running", "Failed", "Succeeded"].contains(kind)).unwrap_or("Unknown");
    vec![row.name(), resource.into(), status.into()]
}
