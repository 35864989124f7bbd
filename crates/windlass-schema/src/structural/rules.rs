//! The rules for all schemas of custom resources, structural or not.

use std::collections::HashSet;

use serde_json::Value;

use super::Props;
use crate::FieldError;
use crate::error_list::ErrorList;
use crate::path::Path;

pub(super) fn check(schema: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    visit(schema, path, Scope { root: true, ..Scope::default() }, errors);
}

/// The position of a schema in the schema of the whole object.
#[derive(Clone, Copy, Default)]
struct Scope {
    root: bool,
    inside_meta: bool,
    /// The reason why defaults are forbidden here.
    no_defaults: Option<&'static str>,
}

fn visit(schema: Props<'_>, path: Path<'_>, scope: Scope, errors: &mut ErrorList) {
    standard(schema, path, scope, errors);
    if schema.flag("uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(path.child("uniqueItems"), detail));
    }
    let inner = Scope { root: false, ..scope };
    additional(schema, path, inner, errors);
    let properties = path.child("properties");
    for (name, property) in schema.named("properties") {
        let mut inner = inner;
        let of_meta = match name {
            "metadata" => Some("in top-level metadata"),
            "apiVersion" => Some("in top-level apiVersion"),
            "kind" => Some("in top-level kind"),
            _ => None,
        };
        if (scope.root || schema.flag("x-kubernetes-embedded-resource")) && of_meta.is_some() {
            inner.inside_meta = true;
            if scope.root {
                inner.no_defaults = of_meta;
            }
        }
        visit(property, properties.key(name), inner, errors);
    }
    if let Some(not) = schema.schema("not") {
        visit(not, path.child("not"), inner, errors);
    }
    for name in ["allOf", "oneOf", "anyOf", "items"] {
        let list = path.child(name);
        for (index, branch) in schema.schemas(name).enumerate() {
            visit(branch, list.index(index), inner, errors);
        }
    }
    let definitions = path.child("definitions");
    for (name, definition) in schema.named("definitions") {
        visit(definition, definitions.key(name), inner, errors);
    }
    if let Some(items) = schema.schema("items") {
        visit(items, path.child("items"), inner, errors);
    }
    extensions(schema, path, errors);
    list_map(schema, path, errors);
    list_keys(schema, path, errors);
    cel_rules(schema, path, errors);
}

/// Rejects keywords of OpenAPI that custom resources do not support.
fn standard(schema: Props<'_>, path: Path<'_>, scope: Scope, errors: &mut ErrorList) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let kind = schema.kind();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(path.child("type"), kind, &TYPES));
    }
    let mut forbid = |name: &str, detail: &str| errors.push(FieldError::forbidden(path.child(name), detail));
    let has_default =
        schema.0.is_some_and(|members| members.get("default").is_some_and(|value| !value.is_null()));
    if let Some(reason) = scope.no_defaults.filter(|_| has_default) {
        forbid("default", &format!("must not be set {reason}"));
    }
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let refused = schema.0.is_some_and(|members| name == "additionalItems" && members.contains_key(name));
        if refused || schema.has(name) {
            forbid(name, &format!("{name} is not supported"));
        }
    }
    if kind == "null" {
        forbid("type", "type cannot be set to null, use nullable as an alternative");
    }
    if schema.get("items").is_some_and(Value::is_array) {
        forbid("items", "items must be a schema object and not an array");
    }
    if scope.inside_meta && schema.flag("x-kubernetes-embedded-resource") {
        forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
    }
}

fn additional(schema: Props<'_>, path: Path<'_>, mut inner: Scope, errors: &mut ErrorList) {
    let at = path.child("additionalProperties");
    let written = schema.0.and_then(|members| members.get("additionalProperties"));
    let exclusive = written.is_some_and(|value| value.is_object() || value == &Value::Bool(false));
    if exclusive && schema.named("properties").next().is_some() {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(at, detail));
    }
    if inner.inside_meta {
        inner.no_defaults = Some("inside additionalProperties applying to object metadata");
    }
    if let Some(additional) = schema.schema("additionalProperties") {
        visit(additional, at, inner, errors);
    }
}

fn extensions(schema: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    let kind = schema.kind();
    let mut must_be = |wanted: &str, name: &str| {
        let detail = format!("must be {wanted} if {name} is specified");
        errors.push(match kind {
            "" => FieldError::required(path.child("type"), detail),
            kind => FieldError::invalid(path.child("type"), kind, detail),
        });
    };
    let map_type = schema.optional_text("x-kubernetes-map-type");
    let list_type = schema.optional_text("x-kubernetes-list-type");
    if map_type.is_some() && kind != "object" {
        must_be("object", "x-kubernetes-map-type");
    }
    let wrong_list = list_type.is_some() && kind != "array";
    if wrong_list {
        must_be("array", "x-kubernetes-list-type");
    }
    let preserve = schema.0.and_then(|members| members.get("x-kubernetes-preserve-unknown-fields"));
    if preserve == Some(&Value::Bool(false)) {
        let at = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(at, false, "must be true or undefined"));
    }
    if let Some(given) = map_type.filter(|given| !["atomic", "granular"].contains(given)) {
        let at = path.child("x-kubernetes-map-type");
        errors.push(FieldError::not_supported(at, given, &["atomic", "granular"]));
    }
    if let Some(items) = schema.schema("items").filter(|_| !wrong_list && list_type == Some("set")) {
        set_items(items, path.child("items"), errors);
    }
    if let Some(given) = list_type.filter(|given| !["atomic", "set", "map"].contains(given)) {
        let at = path.child("x-kubernetes-list-type");
        errors.push(FieldError::not_supported(at, given, &["atomic", "set", "map"]));
    }
}

fn set_items(items: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list_type = items.optional_text("x-kubernetes-list-type");
    match items.kind() {
        "array" if list_type.is_some_and(|given| given != "atomic") => {
            errors.push(FieldError::invalid(path.child("x-kubernetes-list-type"), list_type, detail));
        }
        "object" if items.text("x-kubernetes-map-type") != "atomic" => {
            errors.push(FieldError::invalid(path.child("x-kubernetes-map-type"), list_type, detail));
        }
        _ => {}
    }
}

fn list_map(schema: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    let keys = schema.strings("x-kubernetes-list-map-keys");
    let list_type = schema.optional_text("x-kubernetes-list-type");
    let at_type = path.child("x-kubernetes-list-type");
    let at_keys = path.child("x-kubernetes-list-map-keys");
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(at_type, detail),
            Some(given) => FieldError::invalid(at_type, given, detail),
        });
    }
    if list_type != Some("map") {
        return;
    }
    if keys.is_empty() {
        errors.push(FieldError::required(at_keys, "must not be empty if x-kubernetes-list-type is map"));
    }
    let at_items = path.child("items");
    let Some(items) = schema.schema("items") else {
        if schema.0.and_then(|members| members.get("items")).is_some_and(|items| !items.is_null()) {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            let error = FieldError::invalid(at_items, Value::Null, detail);
            errors.push(error.showing(r#"{"Schema":null,"JSONSchemas":null}"#));
            return;
        }
        errors.push(FieldError::required(at_items, "must have a schema if x-kubernetes-list-type is map"));
        return;
    };
    if items.kind() != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(at_items.child("type"), items.kind(), detail));
        return;
    }
    let all = || keys.iter().map(|key| Value::from(*key)).collect::<Value>();
    let properties = at_items.child("properties");
    let mut seen = HashSet::new();
    for key in &keys {
        if errors.is_full() {
            return;
        }
        match items.property(key) {
            Some(property) if matches!(property.kind(), "array" | "object") => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let at = properties.key(key);
                errors.push(FieldError::invalid(at.child("type"), items.kind(), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(at_keys, all(), detail));
            }
        }
        if !seen.insert(key) {
            errors.push(FieldError::invalid(at_keys, all(), "must not contain duplicate entries"));
        }
    }
}

/// Checks that the keys of a list of type `map` are required or have a default.
fn list_keys(schema: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    let list_type = schema.text("x-kubernetes-list-type");
    let Some(items) = schema.schema("items").filter(|_| matches!(list_type, "set" | "map")) else { return };
    let at_items = path.child("items");
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at_items.child("nullable"), detail));
    }
    if list_type != "map" {
        return;
    }
    let required: HashSet<&str> = items.strings("required").into_iter().collect();
    let properties = at_items.child("properties");
    for key in schema.strings("x-kubernetes-list-map-keys") {
        let Some(property) = items.property(key) else { continue };
        let at = properties.key(key);
        let has_default = property.0.is_some_and(|members| members.contains_key("default"));
        if !required.contains(key) && !has_default {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                          required property";
            errors.push(FieldError::required(at.child("default"), detail));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at.child("nullable"), detail));
        }
    }
}

fn cel_rules(schema: Props<'_>, path: Path<'_>, errors: &mut ErrorList) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let list = path.child("x-kubernetes-validations");
    for (index, rule) in schema.schemas("x-kubernetes-validations").enumerate() {
        let at = list.index(index);
        let (text, message) = (rule.text("rule"), rule.text("message"));
        let breaks = |text: &str| text.trim().contains(['\n', '\r']);
        if text.trim().is_empty() {
            errors.push(FieldError::required(at.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(at.child("message"), message, "must be non-empty if specified"));
        } else if breaks(message) {
            errors.push(FieldError::invalid(at.child("message"), message, "must not contain line breaks"));
        } else if breaks(text) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at.child("message"), detail));
        }
        let expression = rule.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(at.child("messageExpression"), detail));
        }
        let reason = rule.text("reason");
        if !reason.is_empty() && !REASONS.contains(&reason) {
            errors.push(FieldError::not_supported(at.child("reason"), reason, &REASONS).of_named_type());
        }
        let field = rule.text("fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            errors.push(FieldError::invalid(at.child("fieldPath"), field, "must be non-empty if specified"));
        }
        if field.contains(['\n', '\r']) {
            errors.push(FieldError::invalid(at.child("fieldPath"), field, "must not contain line breaks"));
        }
    }
}
