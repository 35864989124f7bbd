//! The columns of `kubectl get`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, condition, join, scalar, text};

/// The columns of nodes.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Status"),
        Column::text("Roles"),
        AGE,
        Column::text("Version"),
        Column::wide("Internal-IP"),
        Column::wide("External-IP"),
        Column::wide("OS-Image"),
        Column::wide("Kernel-Version"),
        Column::wide("Container-Runtime"),
    ],
    cells,
);

fn cells(row: &Row<'_>) -> Vec<Value> {
    let mut status = match condition(row.list("/status/conditions"), "Ready") {
        None => "Unknown",
        Some(ready) if text(ready, "status") == "True" => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if row.bool("/spec/unschedulable") {
        status += ",SchedulingDisabled";
    }
    let mut kernel = row.text_or("/status/nodeInfo/kernelVersion", "<unknown>");
    let architecture = row.str("/status/nodeInfo/architecture");
    if !architecture.is_empty() {
        kernel = format!("{} ({architecture})", scalar(&kernel)).into();
    }
    vec![
        row.name(),
        status.into(),
        roles(row).into(),
        row.age(),
        row.text("/status/nodeInfo/kubeletVersion"),
        address(row, "InternalIP"),
        address(row, "ExternalIP"),
        row.text_or("/status/nodeInfo/osImage", "<unknown>"),
        kernel,
        row.text_or("/status/nodeInfo/containerRuntimeVersion", "<unknown>"),
    ]
}

/// Returns the roles of a node. The roles are labels: `node-role.kubernetes.io/NAME`, or
/// `kubernetes.io/role=NAME`.
fn roles(row: &Row<'_>) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in row.map("/metadata/labels").into_iter().flatten() {
        let role = if key == "kubernetes.io/role" {
            value.as_str()
        } else {
            key.strip_prefix("node-role.kubernetes.io/")
        };
        roles.extend(role.filter(|role| !role.is_empty()));
    }
    if roles.is_empty() { "<none>".to_owned() } else { join(roles.into_iter()) }
}

fn address(row: &Row<'_>, kind: &str) -> Value {
    let found = condition(row.list("/status/addresses"), kind);
    found.map_or("<none>", |address| text(address, "address")).into()
}
