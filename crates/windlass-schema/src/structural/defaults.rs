//! Checks that defaults are valid values of the schemas.

use serde_json::Value;

use crate::error_list::ErrorList;
use crate::go::json_type;
use crate::graph::NodeRef;
use crate::path::Path;
use crate::prune::prune_node;
use crate::validate::{NO_FIELD, check as check_value};
use crate::{FieldError, Schema};

pub(super) fn check(schema: &Value, path: Path<'_>, errors: &mut ErrorList) {
    let compiled = Schema::compile(schema);
    visit(schema, compiled.root(), path, errors, false);
}

/// Checks the defaults of a schema and of all schemas inside. `node` is the compiled schema.
fn visit(schema: &Value, node: NodeRef<'_>, path: Path<'_>, errors: &mut ErrorList, inside_meta: bool) {
    let embedded = node.is_embedded_resource();
    let inside_meta = inside_meta && !embedded;
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        one(schema, node, default, path.child("default"), errors, inside_meta);
    }
    if let Some((items, node)) = schema.get("items").zip(node.items()) {
        visit(items, node, path.child("items"), errors, inside_meta);
    }
    let properties = path.child("properties");
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let of_meta = embedded && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let Some(node) = node.property(name) else { continue };
        visit(property, node, properties.key(name), errors, inside_meta || of_meta);
    }
}

/// Reports values of a schema with an unknown type. No value has such a type.
fn of_unknown_types(schema: &Value, value: &Value, base: &str, name: &str, errors: &mut ErrorList) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    if !kind.is_empty() && !TYPES.contains(&kind) && !value.is_null() {
        let found = match value {
            Value::Number(number) if !number.is_f64() => "integer",
            other => json_type(other),
        };
        let found = if found == "bool" { "boolean" } else { found };
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        // Go compares the format first. Texts and lists have no format.
        let (kind, found) = match found {
            "string" | "array" if !format.is_empty() => return,
            "integer" if !format.is_empty() => (format, "int64"),
            "number" if !format.is_empty() => (format, "double"),
            "boolean" | "object" if !format.is_empty() => (format, ""),
            _ => (kind, found),
        };
        let detail = format!("{name} in body must be of type {kind}: {found:?}");
        let field = if name.is_empty() { base.to_owned() } else { format!("{base}.{name}") };
        errors.push(FieldError::type_invalid(field, found, detail));
    }
    for (member, value) in value.as_object().into_iter().flatten() {
        let property = schema.get("properties").and_then(|properties| properties.get(member));
        if let Some(property) = property.or_else(|| schema.get("additionalProperties")) {
            let name = if name.is_empty() { member.clone() } else { format!("{name}.{member}") };
            of_unknown_types(property, value, base, &name, errors);
        }
    }
}

fn one(
    schema: &Value,
    node: NodeRef<'_>,
    default: &Value,
    path: Path<'_>,
    errors: &mut ErrorList,
    inside_meta: bool,
) {
    if !inside_meta {
        let mut pruned = default.clone();
        prune_node(node, &mut pruned);
        if pruned != *default {
            errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
        }
    }
    let base = String::from(path);
    of_unknown_types(schema, default, &base, "", errors);
    errors.extend(check_value(node, default, None).into_iter().map(|mut error| {
        let is_whole = error.field == NO_FIELD || error.field.is_empty();
        error.field = if is_whole { base.clone() } else { format!("{base}.{}", error.field) };
        error
    }));
}
