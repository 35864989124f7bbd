//! Filling in defaults.

use serde_json::{Map, Value};

use crate::graph::{Additional, NodeRef, Schema};

/// Fills in the schema's defaults, and drops `null` where it is not a value: as the API server does to a
/// custom resource when it reads one.
pub fn default(schema: &Schema, object: &mut Value) {
    drop_nulls(object, schema.root());
    fill(object, schema.root());
}

fn is_unwanted_null(value: &Value, schema: Option<NodeRef<'_>>) -> bool {
    value.is_null() && schema.is_some_and(|schema| !schema.is_nullable())
}

fn drop_nulls(value: &mut Value, schema: NodeRef<'_>) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| {
                let Some(member) = schema.member(name) else { return true };
                if is_unwanted_null(value, Some(member)) && member.default().is_none() {
                    return false;
                }
                drop_nulls(value, member);
                true
            });
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                for item in items {
                    drop_nulls(item, schema);
                }
            }
        }
        _ => {}
    }
}

fn fill(value: &mut Value, schema: NodeRef<'_>) {
    match value {
        Value::Object(members) => fill_members(members, schema),
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for item in items {
                if is_unwanted_null(item, Some(schema)) {
                    *item = schema.default().cloned().unwrap_or(Value::Null);
                }
                fill(item, schema);
            }
        }
        _ => {}
    }
}

fn fill_members(members: &mut Map<String, Value>, schema: NodeRef<'_>) {
    for (name, edge) in &schema.node.properties {
        let Some(default) = &edge.default else { continue };
        let given = members.get(&**name);
        if given.is_none_or(|value| is_unwanted_null(value, Some(schema.follow(edge)))) {
            members.insert(name.to_string(), default.clone());
        }
    }
    for (name, value) in members {
        if let Some(property) = schema.property(name) {
            fill(value, property);
        } else if let Some(Additional::Schema(edge)) = &schema.node.additional {
            let additional = schema.follow(edge);
            if is_unwanted_null(value, Some(additional)) {
                *value = edge.default.clone().unwrap_or(Value::Null);
            }
            fill(value, additional);
        }
    }
}

#[cfg(test)]
mod tests;
