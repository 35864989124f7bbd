//! Tables of workloads that keep pods running.

use serde_json::Value;

use super::BuiltIn;
use super::column::{AGE, Column};
use super::row::{Row, text};

const CONTAINERS: &str = "/spec/template/spec/containers";

const REPLICA_COLUMNS: &[Column] = &[
    Column::name(),
    Column::integer("Desired"),
    Column::integer("Current"),
    Column::integer("Ready"),
    AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

pub(super) const KINDS: &[BuiltIn] = &[
    BuiltIn {
        group: "apps",
        resource: "deployments",
        columns: &[
            Column::name(),
            Column::text("Ready"),
            Column::text("Up-to-date"),
            Column::text("Available"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: |row| {
            let [names, images] = row.containers(CONTAINERS);
            vec![
                row.name(),
                ready(row),
                row.number("/status/updatedReplicas"),
                row.number("/status/availableReplicas"),
                row.age(),
                names,
                images,
                row.selector("/spec/selector", ""),
            ]
        },
    },
    BuiltIn {
        group: "apps",
        resource: "replicasets",
        columns: REPLICA_COLUMNS,
        cells: |row| replicas(row, row.selector("/spec/selector", "<none>")),
    },
    BuiltIn {
        group: "",
        resource: "replicationcontrollers",
        columns: REPLICA_COLUMNS,
        cells: |row| replicas(row, row.labels("/spec/selector")),
    },
    BuiltIn {
        group: "apps",
        resource: "statefulsets",
        columns: &[
            Column::name(),
            Column::text("Ready"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
        ],
        cells: |row| {
            let [names, images] = row.containers(CONTAINERS);
            vec![row.name(), ready(row), row.age(), names, images]
        },
    },
    BuiltIn {
        group: "apps",
        resource: "daemonsets",
        columns: &[
            Column::name(),
            Column::integer("Desired"),
            Column::integer("Current"),
            Column::integer("Ready"),
            Column::integer("Up-to-date"),
            Column::integer("Available"),
            Column::text("Node Selector"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: daemon_set,
    },
    BuiltIn {
        group: "apps",
        resource: "controllerrevisions",
        columns: &[Column::name(), Column::text("Controller"), Column::text("Revision"), AGE],
        cells: |row| vec![row.name(), controller(row).into(), row.number("/revision"), row.age()],
    },
];

fn ready(row: &Row<'_>) -> Value {
    format!("{}/{}", row.int("/status/readyReplicas"), row.int("/spec/replicas")).into()
}

fn replicas(row: &Row<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    vec![
        row.name(),
        row.number("/spec/replicas"),
        row.number("/status/replicas"),
        row.number("/status/readyReplicas"),
        row.age(),
        names,
        images,
        selector,
    ]
}

fn daemon_set(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    vec![
        row.name(),
        row.number("/status/desiredNumberScheduled"),
        row.number("/status/currentNumberScheduled"),
        row.number("/status/numberReady"),
        row.number("/status/updatedNumberScheduled"),
        row.number("/status/numberAvailable"),
        row.labels("/spec/template/spec/nodeSelector"),
        row.age(),
        names,
        images,
        row.selector("/spec/selector", "<none>"),
    ]
}

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
