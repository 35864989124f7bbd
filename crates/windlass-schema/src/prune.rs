//! Pruning: removes fields that the schema does not specify.

use serde_json::Value;

use crate::catalog::object_meta;
use crate::graph::{NodeRef, Schema};
use crate::path::Path;

const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The length of all paths together that [`prune`] returns, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// The paths of unknown fields.
struct Unknown {
    paths: Vec<String>,
    /// The bytes that are left for more paths.
    bytes: usize,
}

impl Unknown {
    fn push(&mut self, path: Path<'_>) {
        if self.bytes > 0 {
            let path = String::from(path);
            self.bytes = self.bytes.saturating_sub(path.len());
            self.paths.push(path);
        }
    }
}

/// Removes the fields that the schema does not specify and returns their paths, sorted; field validation
/// warns of such paths or rejects the object. Only the first of very many paths are returned. `apiVersion`,
/// `kind` and `metadata` of the object and of embedded resources are kept; `metadata` is pruned to the fields
/// of `ObjectMeta`.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    prune_node(schema.root(), object)
}

/// Removes the fields of a value that the schema does not specify, and returns the paths of the fields.
pub(crate) fn prune_node(node: NodeRef<'_>, value: &mut Value) -> Vec<String> {
    let mut unknown = Unknown { paths: Vec::new(), bytes: MAX_BYTES };
    visit(value, Some(node), Path::Root(""), &mut unknown);
    unknown.paths.sort();
    unknown.paths
}

fn visit(value: &mut Value, schema: Option<NodeRef<'_>>, path: Path<'_>, unknown: &mut Unknown) {
    if schema.is_some_and(|schema| schema.format() == Some("json-or")) {
        return union(value, schema, path);
    }
    if let Some(preserving) = schema.filter(|schema| schema.preserves_unknown()) {
        return skip(value, preserving, path, unknown);
    }
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let path = path.child(name);
            let keep = schema.is_some_and(|schema| known(schema, name, value, path, unknown));
            if !keep {
                unknown.push(path);
            }
            keep
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                visit(item, schema.and_then(NodeRef::items), path.index(index), unknown);
            }
        }
        _ => {}
    }
}

/// Prunes a union with a JSON schema, without reporting paths: Go decodes the union separately.
fn union(value: &mut Value, schema: Option<NodeRef<'_>>, path: Path<'_>) {
    let mut silent = Unknown { paths: Vec::new(), bytes: 0 };
    match value {
        Value::Object(members) => members.retain(|name, value| {
            schema.is_some_and(|schema| known(schema, name, value, path.child(name), &mut silent))
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| union(item, schema, path)),
        _ => {}
    }
}

/// Prunes the known fields below a node that preserves unknown fields.
fn skip(value: &mut Value, schema: NodeRef<'_>, path: Path<'_>, unknown: &mut Unknown) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                known(schema, name, value, path.child(name), unknown);
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                skip(item, schema, path.index(index), unknown);
            }
        }
        _ => {}
    }
}

/// Prunes the value of a member; returns whether the schema specifies the member.
fn known(schema: NodeRef<'_>, name: &str, value: &mut Value, path: Path<'_>, unknown: &mut Unknown) -> bool {
    if schema.is_embedded_resource() && OF_EVERY_OBJECT.contains(&name) {
        if name == "metadata" {
            visit(value, Some(object_meta().root()), path, unknown);
        }
        return true;
    }
    if let Some(property) = schema.property(name) {
        visit(value, Some(property), path, unknown);
        return true;
    }
    if schema.node.additional.is_some() {
        visit(value, schema.additional(), path, unknown);
        return true;
    }
    false
}

#[cfg(test)]
mod tests;
