//! The attributes of docs/markers.md, seen in generated definitions.

#[path = "../../examples/markers/everything.rs"]
mod everything;
mod kube_schema;
mod markers;
