//! Checks that defaults are valid values of the schemas.

use serde_json::Value;

use crate::error_list::ErrorList;
use crate::go::json_type;
use crate::graph::NodeRef;
use crate::path::Path;
use crate::prune::prune_node;
use crate::validate::{NO_FIELD, Steps, check_in_steps};
use crate::{FieldError, Schema};

pub(super) fn check(schema: &Value, path: Path<'_>, errors: &mut ErrorList) {
    let compiled = Schema::compile(schema);
    // All defaults together have the limit of an object.
    Checker { errors, steps: Steps::default() }.visit(schema, compiled.root(), path, false);
}

/// A walk over the defaults of a schema.
struct Checker<'e> {
    errors: &'e mut ErrorList,
    steps: Steps,
}

impl Checker<'_> {
    /// Checks the defaults of a schema and of all schemas inside. `node` is the compiled schema.
    fn visit(&mut self, schema: &Value, node: NodeRef<'_>, path: Path<'_>, inside_meta: bool) {
        let embedded = node.is_embedded_resource();
        let inside_meta = inside_meta && !embedded;
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            self.one(schema, node, default, path.child("default"), inside_meta);
        }
        if let Some((items, node)) = schema.get("items").zip(node.items()) {
            self.visit(items, node, path.child("items"), inside_meta);
        }
        let properties = path.child("properties");
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let of_meta = embedded && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
            let Some(node) = node.property(name) else { continue };
            self.visit(property, node, properties.key(name), inside_meta || of_meta);
        }
    }

    /// Checks the default at `path`.
    fn one(&mut self, schema: &Value, node: NodeRef<'_>, default: &Value, path: Path<'_>, inside_meta: bool) {
        if !inside_meta {
            let mut pruned = default.clone();
            prune_node(node, &mut pruned);
            if pruned != *default {
                self.errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
            }
        }
        let base = String::from(path);
        of_unknown_types(schema, default, &base, "", self.errors);
        let errors = check_in_steps(node, default, None, &mut self.steps);
        self.errors.extend(errors.into_iter().map(|mut error| {
            let is_whole = error.field == NO_FIELD || error.field.is_empty();
            error.field = if is_whole { base.clone() } else { format!("{base}.{}", error.field) };
            error
        }));
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
