//! Warnings about schemas: formats that the server does not check, and sets of lists or objects.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::{go_quote, knows_format};

use super::{list, text};

/// Returns the warnings about the schemas of a definition.
pub(super) fn warnings(definition: &Value) -> Vec<String> {
    let (mut formats, mut sets) = (Vec::new(), BTreeSet::new());
    for version in list(&definition["spec"], "versions") {
        visit(&version["schema"]["openAPIV3Schema"], &mut |schema| {
            let (kind, format) = (text(schema, &["type"]), text(schema, &["format"]));
            if !format.is_empty()
                && !knows_format(kind, format)
                && !formats.iter().any(|known| known == format)
            {
                formats.push(format.to_owned());
            }
            let item = text(schema, &["items", "type"]);
            if text(schema, &["x-kubernetes-list-type"]) == "set" && ["object", "array"].contains(&item) {
                sets.insert(item.to_owned());
            }
        });
    }
    let formats = formats.iter().map(|format| format!("unrecognized format {}", go_quote(format)));
    let sets = sets.iter().map(|item| {
        format!(
            "x-kubernetes-list-type: set for items of type {} is not supported by server-side apply or CEL validation rules",
            go_quote(item)
        )
    });
    formats.chain(sets).collect()
}

/// Calls `found` with the schema and all schemas inside the schema.
fn visit(schema: &Value, found: &mut impl FnMut(&Value)) {
    let Some(keywords) = schema.as_object() else { return };
    found(schema);
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" | "patternProperties" | "definitions" | "dependencies" => {
                value.as_object().into_iter().flatten().for_each(|(_, schema)| visit(schema, found));
            }
            "items" | "allOf" | "anyOf" | "oneOf" if value.is_array() => {
                value.as_array().into_iter().flatten().for_each(|schema| visit(schema, found));
            }
            "items" | "not" | "additionalProperties" | "additionalItems" => visit(value, found),
            _ => {}
        }
    }
}
