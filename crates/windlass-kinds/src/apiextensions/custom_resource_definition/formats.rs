//! Formats of schemas that the server does not check.

use serde_json::Value;
use windlass_schema::knows_format;

use super::{list, text};

/// Returns the unknown formats in the schemas of a definition, in order of appearance.
pub(crate) fn unknown_formats(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for version in list(&definition["spec"], "versions") {
        collect(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

fn collect(schema: &Value, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else { return };
    let (kind, format) = (text(schema, &["type"]), text(schema, &["format"]));
    if !format.is_empty() && !knows_format(kind, format) && !found.iter().any(|known| known == format) {
        found.push(format.to_owned());
    }
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" | "patternProperties" | "definitions" | "dependencies" => {
                value.as_object().into_iter().flatten().for_each(|(_, schema)| collect(schema, found));
            }
            "items" | "allOf" | "anyOf" | "oneOf" if value.is_array() => {
                value.as_array().into_iter().flatten().for_each(|schema| collect(schema, found));
            }
            "items" | "not" | "additionalProperties" | "additionalItems" => collect(value, found),
            _ => {}
        }
    }
}
