//! The rules that make a schema structural.

use serde_json::Value;
use windlass_text::Patterns;

use super::{Props, is_zero};
use crate::FieldError;
use crate::error_list::ErrorList;
use crate::path::Path;

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

pub(super) fn check(schema: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    structural(schema, Level::Root, path, &Patterns::default(), errors);
}

fn structural(schema: Props<'_>, level: Level, path: Path<'_>, patterns: &Patterns, errors: &mut ErrorList) {
    let items = schema.schema("items");
    if schema.kind() == "array" && items.is_none() {
        errors.push(FieldError::required(path.child("items"), "must be specified"));
    }
    if let Some(items) = items {
        structural(items, Level::Item, path.child("items"), patterns, errors);
    }
    let properties = path.child("properties");
    for (name, property) in schema.named("properties") {
        structural(property, Level::Field, properties.key(name), patterns, errors);
    }
    let additional = path.child("additionalProperties");
    if level == Level::Root
        && schema
            .0
            .is_some_and(|members| members.get("additionalProperties").is_some_and(|value| !value.is_null()))
    {
        errors.push(FieldError::forbidden(additional, "must not be used at the root"));
    }
    if let Some(inner) = schema.schema("additionalProperties") {
        structural(inner, Level::Field, additional, patterns, errors);
    }
    extensions(schema, path, errors);
    let skip_any_of = is_int_or_string(schema);
    let skip_first = schema.schemas("allOf").next().is_some_and(is_int_or_string);
    values(schema, skip_any_of, skip_first, path, patterns, errors);
    types(schema, level, path, errors);
    metadata(schema, level, path, errors);
}

/// Returns whether the schema has the only allowed use of types in a junctor: `anyOf: [{type: integer},
/// {type: string}]`.
fn is_int_or_string(schema: Props<'_>) -> bool {
    let of_type = |kind: &str, branch: Option<&Props<'_>>| {
        branch.and_then(|branch| branch.0).is_some_and(|members| {
            members.get("type").is_some_and(|value| value == kind)
                && members.iter().all(|(name, value)| name == "type" || is_zero(value))
        })
    };
    let branches: Vec<Props<'_>> = schema.schemas("anyOf").collect();
    branches.len() == 2 && of_type("integer", branches.first()) && of_type("string", branches.get(1))
}

fn extensions(schema: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    if !schema.flag("x-kubernetes-int-or-string") {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if schema.flag(name) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(path.child(name), true, detail));
        }
    }
}

fn types(schema: Props<'_>, level: Level, path: Path<'_>, errors: &mut ErrorList) {
    let kind = schema.kind();
    let at = path.child("type");
    let preserves = schema.flag("x-kubernetes-preserve-unknown-fields");
    let embedded = schema.flag("x-kubernetes-embedded-resource");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(at, detail),
            kind => FieldError::invalid(at, kind, detail),
        });
    } else if kind.is_empty() && !schema.flag("x-kubernetes-int-or-string") && !preserves {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at, detail));
    }
    if embedded && schema.0.is_some_and(|members| members.contains_key("additionalProperties")) {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(path.child("additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at, kind, "must be object at the root"));
    }
    if embedded && !preserves && schema.named("properties").next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(path.child("properties"), detail));
    }
}

fn metadata(schema: Props<'_>, level: Level, path: Path<'_>, errors: &mut ErrorList) {
    let of_object = level == Level::Root || schema.flag("x-kubernetes-embedded-resource");
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) =
            schema.property(name).filter(|property| of_object && property.kind() != "string")
        {
            let at = properties.key(name);
            errors.push(FieldError::invalid(at.child("type"), property.kind(), "must be string"));
        }
    }
    let Some(metadata) = schema.property("metadata") else { return };
    let at = properties.key("metadata");
    if of_object && metadata.kind() != "object" {
        errors.push(FieldError::invalid(at.child("type"), metadata.kind(), "must be object"));
    }
    let plain = |(name, value): (&String, &Value)| match name.as_str() {
        "type" | "default" => true,
        "properties" => value
            .as_object()
            .is_some_and(|names| names.keys().all(|name| matches!(name.as_str(), "name" | "generateName"))),
        _ => is_zero(value),
    };
    if level == Level::Root && !metadata.0.is_some_and(|members| members.iter().all(plain)) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(at, detail));
    }
}

fn values(
    schema: Props<'_>,
    skip_any_of: bool,
    skip_first: bool,
    path: Path<'_>,
    patterns: &Patterns,
    errors: &mut ErrorList,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skip_any_of {
            continue;
        }
        let list = path.child(name);
        for (index, branch) in schema.schemas(name).enumerate() {
            let skip = name == "allOf" && skip_first && index == 0;
            nested(branch, skip, list.index(index), patterns, errors);
        }
    }
    if let Some(branch) = schema.schema("not") {
        nested(branch, false, path.child("not"), patterns, errors);
    }
    let source = schema.text("pattern");
    if let Some(error) = (!source.is_empty()).then(|| patterns.error(source)).flatten() {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(path.child("pattern"), source, detail));
    }
}

/// Checks a schema in a junctor. Such a schema may constrain values but not structure.
fn nested(schema: Props<'_>, skip_any_of: bool, path: Path<'_>, patterns: &Patterns, errors: &mut ErrorList) {
    values(schema, skip_any_of, false, path, patterns, errors);
    if let Some(items) = schema.schema("items") {
        nested(items, false, path.child("items"), patterns, errors);
    }
    let properties = path.child("properties");
    for (name, property) in schema.named("properties") {
        nested(property, false, properties.key(name), patterns, errors);
    }
    let mut forbid = |name: &str, detail: &str| errors.push(FieldError::forbidden(path.child(name), detail));
    if schema.has("type") {
        forbid("type", "must be empty to be structural");
    }
    if schema.has("additionalProperties") {
        forbid("additionalProperties", "must be undefined to be structural");
    }
    if schema.0.is_some_and(|members| members.get("default").is_some_and(|value| !value.is_null())) {
        forbid("default", "must be undefined to be structural");
    }
    for (name, what) in FORBIDDEN_IN_JUNCTORS {
        if schema.has(name) {
            forbid(name, &format!("must be {what} to be structural"));
        }
    }
    if schema.property("metadata").is_some() {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(properties.key("metadata"), detail));
    }
}

const FORBIDDEN_IN_JUNCTORS: [(&str, &str); 10] = [
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"),
    ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    ("x-kubernetes-validations", "empty"),
];
