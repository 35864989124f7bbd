//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, text};

/// The columns of rolebindings and clusterrolebindings.
pub(super) static TABLE: Table = Table::new(BINDING_COLUMNS, binding);

const BINDING_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Role"),
    AGE,
    Column::wide("Users"),
    Column::wide("Groups"),
    Column::wide("ServiceAccounts"),
];

fn binding(row: &Row<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let names =
            row.list("/subjects").iter().filter(|subject| text(subject, "kind") == kind).map(|subject| {
                match text(subject, "namespace") {
                    _ if kind != "ServiceAccount" => text(subject, "name").to_owned(),
                    namespace => format!("{namespace}/{}", text(subject, "name")),
                }
            });
        Value::from(names.collect::<Vec<_>>().join(", "))
    };
    vec![
        row.name(),
        format!("{}/{}", row.str("/roleRef/kind"), row.str("/roleRef/name")).into(),
        row.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
