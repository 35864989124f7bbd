//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, text};

/// The columns of controllerrevisions.
pub(super) static TABLE: Table =
    Table::new(&[Column::name(), Column::text("Controller"), Column::text("Revision"), AGE], |row| {
        vec![row.name(), controller(row).into(), row.number("/revision"), row.age()]
    });

/// Returns the owner that controls the object, as `kind.group/name`.
fn controller(row: &Row<'_>) -> String {
    let owners = row.list("/metadata/ownerReferences");
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool).unwrap_or_default();
    let Some(owner) = owners.iter().find(controls) else { return "<none>".to_owned() };
    let group = text(owner, "apiVersion").split_once('/').map_or("", |(group, _)| group);
    let kind = text(owner, "kind").to_lowercase();
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{}", text(owner, "name"))
}
