//! Schema: `values.schema.json`. Helm checks the user's values with the schema.

use serde_json::{Map, Value, json};

use super::{Model, values};
use crate::manifests::GENERATED;

/// Returns `values.schema.json`. Values without a schema are allowed: a parent chart, or a file of values for a chart of kubebuilder, may
/// have more.
pub(super) fn text(model: &Model<'_>) -> String {
    let mut manager = Map::new();
    for default in values::manager(model, &Value::Null) {
        manager.insert(default.name.to_owned(), typed(&default.value, default.name));
    }
    let mut properties = Map::from_iter([
        ("fullnameOverride".to_owned(), json!({ "type": "string" })),
        ("nameOverride".to_owned(), json!({ "type": "string" })),
        ("manager".to_owned(), json!({ "type": "object", "properties": manager })),
    ]);
    for (name, value, comment) in values::parts(model) {
        let mut schema = typed(&value, name);
        schema["description"] = json!(comment);
        if value["enable"].is_boolean() {
            schema["properties"]["enabled"] =
                json!({ "type": "boolean", "description": "Wins over enable." });
        }
        properties.insert(name.to_owned(), schema);
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": properties,
    });
    let text = format!("{schema:#}");
    // The first line says that the file is generated: JSON has no comments.
    format!("{{ \"$comment\": \"{GENERATED}\",{}\n", text.strip_prefix('{').unwrap_or(&text))
}

/// Returns the schema of the values that may replace a default.
fn typed(default: &Value, name: &str) -> Value {
    match default {
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(_) if name == "port" => json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
        Value::Number(_) => json!({ "type": "integer", "minimum": 0 }),
        // `--set manager.image.tag=1` is a number.
        Value::String(_) if name == "tag" => json!({ "type": ["string", "number"] }),
        Value::String(_) if name == "digest" => {
            json!({ "type": "string", "pattern": "^(sha(256|512):[0-9a-f]+)?$" })
        }
        Value::String(_) if name == "pullPolicy" => {
            json!({ "type": "string", "enum": ["", "Always", "IfNotPresent", "Never"] })
        }
        Value::String(_) => json!({ "type": "string" }),
        Value::Array(_) if name == "args" => json!({ "type": "array", "items": { "type": "string" } }),
        Value::Array(_) => json!({ "type": "array" }),
        Value::Object(members) if name == "image" || members.contains_key("enable") => {
            let properties: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), typed(value, name))).collect();
            json!({ "type": "object", "properties": properties })
        }
        Value::Object(_) => json!({ "type": "object" }),
        Value::Null => json!({}),
    }
}
