//! The attributes of docs/markers.md, seen in generated definitions.

mod everything;
mod markers;
