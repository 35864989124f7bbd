//! Defaults are valid values of their own schemas.

use serde_json::Value;

use super::Props;
use crate::path::Path;
use crate::validate::{NO_FIELD, check as check_value};
use crate::{FieldError, Schema, prune};

pub(super) fn check(schema: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    visit(schema, path, errors, true, false);
}

fn visit(schema: &Value, path: Path<'_>, errors: &mut Vec<FieldError>, embedded: bool, inside_meta: bool) {
    let props = Props::of(schema);
    let embedded = embedded || props.flag("x-kubernetes-embedded-resource");
    let inside_meta = inside_meta && !embedded;
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        one(schema, default, path.child("default"), errors, embedded, inside_meta);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        visit(items, path.child("items"), errors, false, inside_meta);
    }
    let properties = path.child("properties");
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let of_meta = embedded && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        visit(property, properties.key(name), errors, false, inside_meta || of_meta);
    }
}

fn one(
    schema: &Value,
    default: &Value,
    path: Path<'_>,
    errors: &mut Vec<FieldError>,
    embedded: bool,
    inside_meta: bool,
) {
    let compiled = Schema::compile_part(schema, embedded);
    if !inside_meta {
        let mut pruned = default.clone();
        prune(&compiled, &mut pruned);
        if pruned != *default {
            errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
        }
    }
    let base = path.to_string();
    errors.extend(check_value(compiled.root(), default, None).into_iter().map(|mut error| {
        error.field = if error.field == NO_FIELD { base.clone() } else { format!("{base}.{}", error.field) };
        error
    }));
}
