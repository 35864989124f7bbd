//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::Column;
use crate::table::row::{Row, text};

/// The columns of ipaddresses.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("ParentRef")], |row| {
    // The real server also writes the age here, without a column for the age.
    vec![row.name(), parent(row).into(), row.age()]
});

fn parent(row: &Row<'_>) -> String {
    let Some(parent) = row.value("/spec/parentRef") else { return "<none>".to_owned() };
    let (group, namespace) = (text(parent, "group"), text(parent, "namespace"));
    let mut out = text(parent, "resource").to_lowercase();
    if !group.is_empty() {
        out = format!("{out}.{}", group.to_lowercase());
    }
    if !namespace.is_empty() {
        out = format!("{out}/{namespace}");
    }
    format!("{out}/{}", text(parent, "name"))
}
