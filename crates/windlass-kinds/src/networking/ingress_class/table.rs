//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, text};

/// The columns of ingressclasses.
pub(super) static TABLE: Table =
    Table::new(&[Column::name(), Column::text("Controller"), Column::text("Parameters"), AGE], ingress_class);

fn ingress_class(row: &Row<'_>) -> Vec<Value> {
    let mut name = row.str("/metadata/name").to_owned();
    if row.str("/metadata/annotations/ingressclass.kubernetes.io~1is-default-class") == "true" {
        name += " (default)";
    }
    let parameters = row.value("/spec/parameters").map_or_else(
        || "<none>".to_owned(),
        |parameters| {
            let group = text(parameters, "apiGroup");
            let dot = if group.is_empty() { "" } else { "." };
            format!("{}{dot}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
        },
    );
    vec![name.into(), row.text("/spec/controller"), parameters.into(), row.age()]
}
