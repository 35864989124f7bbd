//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, condition, text};

/// The columns of apiservices.
pub(super) static TABLE: Table =
    Table::new(&[Column::name(), Column::text("Service"), Column::text("Available"), AGE], api_service);

fn api_service(row: &Row<'_>) -> Vec<Value> {
    let service = row.value("/spec/service").map_or_else(
        || "Local".to_owned(),
        |service| format!("{}/{}", text(service, "namespace"), text(service, "name")),
    );
    let available = match condition(row.list("/status/conditions"), "Available") {
        None => "Unknown".to_owned(),
        Some(found) if text(found, "status") == "True" => "True".to_owned(),
        Some(found) => format!("{} ({})", text(found, "status"), text(found, "reason")),
    };
    vec![row.name(), service.into(), available.into(), row.age()]
}
