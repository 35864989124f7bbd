//! Columns and cells that workloads share.

use serde_json::Value;

use crate::table::column::{AGE, Column};
use crate::table::row::Row;

pub(crate) const CONTAINERS: &str = "/spec/template/spec/containers";

pub(crate) const REPLICA_COLUMNS: &[Column] = &[
    Column::name(),
    Column::integer("Desired"),
    Column::integer("Current"),
    Column::integer("Ready"),
    AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

pub(crate) fn ready(row: &Row<'_>) -> Value {
    format!("{}/{}", row.int("/status/readyReplicas"), row.int("/spec/replicas")).into()
}

pub(crate) fn replicas(row: &Row<'_>, selector: Value) -> Vec<Value> {
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
